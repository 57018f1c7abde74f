-- @include key-state.lua
--
-- What the calls have in common that decide in the store, take and lease. Both see the bucket less
-- the stock that hybrid pods hold, and both send who must wait away with a ticket.

-- A ticket is at most this far behind the instant at which its cost fits.
local TICKET_SPAN = 2000000
-- Nobody waits for longer; keeps every ticket a number that is exact.
local TICKET_MAX = 1000000000000000

-- floor(x / y) and ceil(x / y) of whole numbers: a quotient next to a whole number is rounded to
-- it.
local function whole_below(x, y)
  local n = floor(x / y)
  if n * y > x then n = n - 1 end
  return n
end

local function whole_above(x, y)
  local n = ceil(x / y)
  if n * y < x then n = n + 1 end
  return n
end

-- Tokens to spend, times P; below 0 when some are missing.
local function room_of_key()
  local s = state
  return s.b * s.P - s.D - (s.O + s.Op) * s.P
end

-- The least that the deficit may be: tokens in leases are not in the bucket.
local function least_deficit()
  local s = state
  return min(s.o0 + s.o1 + s.o2, s.b) * s.P
end

-- What a reply tells as the level lacks the stock of hybrid pods too.
local function keep_told_room()
  local s = state
  if s.O + s.Op > 0 then keep_told(s.D + (s.O + s.Op) * s.P) end
end

-- Puts tokens (times P) back.
local function put_back(worth)
  local s = state
  s.D = min(s.D, max(least_deficit(), s.D - worth))
end

-- Gives back tokens that nobody has spent or will: taken at `taken_at`, and since `free_at` neither
-- in the bucket nor, as leases are, kept apart from its refill.
--
-- Nothing is minted, whatever their age. Let S be what the bucket lacks beyond what is spent and
-- beyond what is out in leases. It holds these tokens at first. A refill makes it smaller only if
-- the bucket of what is spent alone is full, and then by no more than that refill. So as long as
-- each give-back takes no more than its tokens less all refill since `free_at`, what is left of all
-- that may still come adds up to no more than S: while one of them has something left, their sum
-- has lost each refill at least once. Several that come as one, taken when the oldest of them was,
-- lose each refill once for the same reason.
--
-- Young takes lose nothing, as long as the bucket has lacked no less than all of them (z, in
-- refill_key): then the bucket of what is spent was not full, or an older give-back has lost that
-- refill already. Under load that is so, and a token of a busy limit would else be worth nothing
-- after a millisecond.
--
-- What was taken before a loss, a failover or a change of terms may not be missing in this bucket,
-- or not as much. (A strict limit hands nothing out for STRICT_HOLD after a loss or failover.)
local function give_back(tokens, taken_at, free_at, is_take, now, lane)
  local s = state
  if not (tokens > 0) or free_at > now or taken_at <= lane.changed_at then return end
  local broken_at = max(lane.lost_at, lane.moved_at)
  if broken_at > 0 and taken_at < broken_at + STRICT_HOLD then return end
  local worth = tokens * s.P
  local tick = floor(free_at / limit.tick)
  local is_young = is_take and tick * limit.tick >= s.z
    and floor(tick * limit.tick / limit.take_slot) >= floor(s.t / limit.take_slot) - 1
  if not is_young then worth = worth - s.L * (floor(now / limit.tick) - tick) end
  if worth > 0 then put_back(worth) end
end

-- A call that has lain somewhere for longer than the tolerance decides nothing: its pod has given
-- up on it, or has lost the connection that the answer would come by, as after a server that hung.
-- `heard` is the server's own time in the last reply to a call of this lane that the pod heard (0
-- for none), `ago` us passed since that one was sent. Clocks may drift a thousandth apart. A step
-- of the server's clock looks the same, and costs as little: the pod asks again.
local function is_stale(lane, heard, ago, tolerance)
  if not (heard > 0) then return false end
  return lane.now - lane.offset - heard - ago > tolerance + ago / 1000
end

-- The instant at which to ask again: not before what is missing (times P) is there, and one caller
-- behind the other, `spread` us apart, first come, first served.
local function give_ticket(now, missing, spread)
  local s = state
  local base = now
  if missing > 0 then
    local ticks = whole_above(missing, s.L * (1 - limit.hold))
    base = max(now, min(s.t + ticks * limit.tick, now + TICKET_MAX))
  end
  s.q = min(max(s.q + spread, base), base + TICKET_SPAN)
  return s.q
end

-- Callers with a ticket come at most this often: twice per token, or every 20 ms.
local function ticket_spread()
  return ceil(1e6 * min(0.5 / limit.rate, 0.02))
end
