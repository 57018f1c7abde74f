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

-- Puts tokens back.
local function put_back(tokens)
  local s = state
  s.D = min(s.D, max(least_deficit(), s.D - tokens * s.P))
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
