-- @include numbers.lua
--
-- The state of one limit and key: one value for all modes, loaded and advanced the same way by
-- every script. Any script must: open_key, advance_key, change what it is about, save_key.
--
-- Value: 19 doubles, all >= 0, and a 20th while it says something (K). Tokens are whole numbers;
-- times are us of the lane's clock.
--    L P b        refill (tokens) per period (ticks), and burst, of the limit it was written for
--    D            deficit: tokens missing from a full bucket, times P
--    t            instant up to which D is refilled; never runs ahead of the lane's clock
--    E C A        decayed sums: demand, consumption (tokens), call time (s; A/tau = active pods)
--    O Op tS S    ledger of stock: tokens out since slot start tS, in the slot before, slot length
--    q            last retry ticket given out (exact and leased mode)
--    o0 o1 o2     tokens out in leases that end at the first, second, third slot end after t
--    w0 w1        tokens of takes in the take slot before that of t, and in that of t
--    z            last t at which a part of w0 + w1, given back, could have been lost to the clip
--    K            no pod was told that the bucket is full only after this; stored when it is full
--                 earlier, because tokens came back or the limit was changed
--
-- Lost keys. Absent means full, so a key that Redis evicted or somebody deleted would be a free
-- burst. A pod therefore sends `full_at`, the time before which the bucket cannot be full by the
-- last reply that told it the level. A value outlives all that was ever told of it (K), so an
-- absent key before that time is a lost one, and starts as after a loss of data at this instant.
local KEY_BYTES = 19 * 8
local KEY_FORMAT = "<ddddddddddddddddddd"
local KEPT_FORMAT = "<d"
-- No time that is stored is beyond this; it is not SAFE itself, so that it may be stored.
local KEPT_MAX = 9e15

-- What may have been wrong with a key, as a reply tells it.
local DAMAGED = 1
local LOST = 2

-- Length of a lease slot: half a lease. A slot is never shorter than a tick, because time stands
-- still in between, and a grant must outlive the lease that the pod counts from before it asked.
local LEASE_SLOT = 500000
-- A take is young in its slot of time and the next; see give_back in store-call.lua.
local TAKE_SLOT = 100000
-- After a loss a strict limit admits nothing until every lease that may be out is void.
local STRICT_HOLD = 1000000
-- A key further ahead of the clock than this was written under a lane record that is gone.
local REGRESS_MAX = 2000000
-- Kept beyond its last use, so that a step of the server's own clock does not delete a live key.
local EXPIRY_MARGIN_MS = 60000
local EXPIRY_MAX_MS = 1e15

-- The limit in hand, as the caller's entry tells it: refill, period, tick (us), burst, max_debt
-- (tokens), lost (0..1; 0 makes it strict), hold (0..1, the part of the refill held back), and what
-- follows from these: rate (tokens/s), tau (s), ledger_slot, lease_slot and take_slot (us).
-- Both tables are used again for each key of a call: no garbage per key.
local limit = {}
local state = {}

local function set_limit(refill, period, tick, burst, max_debt, interval, lost, hold)
  limit.refill, limit.period, limit.tick, limit.burst = refill, period, tick, burst
  limit.max_debt, limit.lost, limit.hold = max_debt, lost, hold
  limit.rate = (refill / period) * (1e6 / tick)
  limit.tau = 5 * interval
  limit.ledger_slot = floor(3 * interval * 1e6 + 0.5)
  limit.lease_slot = max(LEASE_SLOT, tick)
  limit.take_slot = max(TAKE_SLOT, tick)
end

local function is_key_state(s)
  return s.L > 0 and s.P > 0 and s.b > 0 and s.S > 0
    and s.D >= 0 and s.t >= 0 and s.E >= 0 and s.C >= 0 and s.A >= 0
    and s.O >= 0 and s.Op >= 0 and s.tS >= 0 and s.q >= 0 and s.o0 >= 0 and s.o1 >= 0 and s.o2 >= 0
    and s.w0 >= 0 and s.w1 >= 0 and s.z >= 0 and s.K >= 0
    and s.L < SAFE and s.P < SAFE and s.b < SAFE and s.S < SAFE
    and s.D < SAFE and s.t < SAFE and s.E < SAFE and s.C < SAFE and s.A < SAFE
    and s.O < SAFE and s.Op < SAFE and s.tS < SAFE
    and s.q < SAFE and s.o0 < SAFE and s.o1 < SAFE and s.o2 < SAFE
    and s.w0 < SAFE and s.w1 < SAFE and s.z < SAFE and s.K < SAFE
end

-- The time at which the bucket is full, or was, when it lacks so much (times P).
local function full_with(lacking)
  return state.t + ceil(lacking / state.L) * limit.tick
end

-- Pods were told, or are, that so much is lacking.
local function keep_told(lacking)
  local s = state
  s.K = min(max(s.K, full_with(lacking)), KEPT_MAX)
end

-- Time in us from t on that the value still says something: until the bucket is full, as it is and
-- as pods were told, leases have ended, and the estimates have faded.
local function life_of_key()
  local s = state
  local full = max(full_with(s.D), s.K) - s.t
  if s.o0 + s.o1 + s.o2 > 0 then full = max(full, 3 * limit.lease_slot) end
  return full + ceil(max(10 * limit.tau, 10) * 1e6)
end

-- Puts the state into the terms of `limit` when it was written for other numbers: the level is
-- scaled with the burst, debt stays. Scaling is reversible, so two versions of a configuration that
-- alternate during a roll-out give nothing away. Leases that are out stay out. What was taken
-- before is worth something else now and is given back no more (open_key). Returns whether it did
-- anything.
local function convert_key()
  local s = state
  local same = s.L == limit.refill and s.P == limit.period and s.b == limit.burst
  -- In other terms a tick may have been another; one of a microsecond is never taken for longer.
  if same or limit.tick == 1 then keep_told(s.D) end
  if same then return false end
  s.w0, s.w1, s.z = 0, 0, 0
  local level = s.b - s.D / s.P
  if level > 0 then level = level * (limit.burst / s.b) else level = max(level, -limit.max_debt) end
  s.L, s.P, s.b = limit.refill, limit.period, limit.burst
  s.D = max(0, ceil((s.b - level) * s.P))
  s.D = max(s.D, min(s.o0 + s.o1 + s.o2, s.b) * s.P)
  return true
end

-- Refills up to `to`, never above the burst less what is out in leases. Where the bucket then lacks
-- less than what was taken lately, it would be full had all of that not been taken: from there on
-- the refill would be lost, and what is given back of it must not bring it back.
local function refill_key(to)
  local s = state
  local ticks = floor((to - s.t) / limit.tick)
  local leased = (s.o0 + s.o1 + s.o2) * s.P
  local young = (s.w0 + s.w1) * s.P
  if s.D <= leased then
    if young > 0 then s.z = to end
    s.t = to
    return
  end
  local gain = floor(s.L * (1 - limit.hold) * ticks)
  if young > 0 and s.D - gain - leased < young then s.z = to end
  if gain >= s.D - leased then
    s.D = leased
    s.t = to
  else
    s.D = s.D - gain
    s.t = s.t + ticks * limit.tick
  end
end

-- The ledger has two slots and no decay: stock may be used for one slot length after it was asked
-- for, so what was handed out is forgotten one to two slot lengths later.
local function rotate_ledger()
  local s = state
  local age = s.t - s.tS
  if age < 0 then
    s.tS = s.t
  elseif age >= s.S then
    if age >= 2 * s.S then
      s.Op, s.O, s.tS = 0, 0, s.t
    else
      s.Op, s.O, s.tS = s.O, 0, s.tS + s.S
    end
    if limit.ledger_slot > s.S or s.Op == 0 then s.S = limit.ledger_slot end
  end
end

-- The slots of takes are by t, so no start is kept.
local function rotate_takes(before)
  local s = state
  if s.w0 + s.w1 == 0 then return end
  local passed = floor(s.t / limit.take_slot) - floor(before / limit.take_slot)
  if passed == 1 then
    s.w0, s.w1 = s.w1, 0
  elseif passed > 1 then
    s.w0, s.w1 = 0, 0
  end
end

-- Brings `state` to `now`. The refill goes piece by piece, up to each lease slot end with the
-- leases that were out until then: refilling the past with the leases of the present would pay
-- tokens a second time that stood in a lease all along.
local function advance_key(now)
  local s = state
  local before = s.t
  if now < before then
    if before - now > REGRESS_MAX then
      s.o0, s.o1, s.o2 = 0, s.o0, s.o1 + s.o2
      s.q = min(s.q, now + REGRESS_MAX)
      s.K = 0
      s.t = floor(now / limit.tick) * limit.tick
    end
  else
    local at = max(before, floor(now / limit.tick) * limit.tick)
    if s.o0 + s.o1 + s.o2 > 0 then
      local slot_end = (floor(before / limit.lease_slot) + 1) * limit.lease_slot
      for _ = 1, 3 do
        if slot_end > at then break end
        refill_key(slot_end)
        s.o0, s.o1, s.o2 = s.o1, s.o2, 0
        slot_end = slot_end + limit.lease_slot
      end
    end
    refill_key(at)
    s.t = at
    rotate_takes(before)
    local seconds = (at - before) / 1e6
    if seconds > 0 then
      local kept = expn(seconds / limit.tau)
      s.E, s.C, s.A = s.E * kept, s.C * kept, s.A * kept
    end
  end
  rotate_ledger()
end

-- The instant from which a strict limit refills again after a loss.
local function strict_from(lost_at)
  return ceil((lost_at + STRICT_HOLD) / limit.tick) * limit.tick
end

-- Starts a key anew. Absent means full; after a loss (`lost_at` above 0) it means a part of the
-- burst and what was refilled since. A strict limit starts with nothing, and refills only after
-- its hold.
local function fresh_key(now, lost_at)
  local s = state
  local at = floor(now / limit.tick) * limit.tick
  s.L, s.P, s.b = limit.refill, limit.period, limit.burst
  s.D, s.t, s.E, s.C, s.A = 0, at, 0, 0, 0
  s.O, s.Op, s.tS, s.S, s.q, s.o0, s.o1, s.o2 = 0, 0, at, limit.ledger_slot, 0, 0, 0, 0
  s.w0, s.w1, s.z, s.K = 0, 0, 0, 0
  if lost_at == 0 then return end
  if limit.lost > 0 then
    local start = max(1, limit.lost * s.b)
    local level = min(s.b, start + limit.rate * (max(0, now - lost_at) / 1e6))
    s.D = ceil((s.b - level) * s.P)
  else
    local from = strict_from(lost_at)
    s.t = max(at, from)
    s.tS = s.t
    s.D = max(0, s.b * s.P - s.L * ((s.t - from) / limit.tick))
  end
end

-- Loads `value` (false when absent) into `state`. `full_at` is the time before which the bucket
-- cannot be full as the calling pod knows, 0 when it knows nothing. Returns DAMAGED when the value
-- was unreadable, LOST when it should have been there, else 0.
local function open_key(value, odd, now, lane, full_at)
  local s = state
  local strict = not (limit.lost > 0)
  local lost_at = lane.lost_at
  if strict then lost_at = max(lost_at, lane.moved_at) end
  local whole = false
  if value and (#value == KEY_BYTES or #value == KEY_BYTES + 8) then
    s.L, s.P, s.b, s.D, s.t, s.E, s.C, s.A, s.O, s.Op, s.tS, s.S, s.q, s.o0, s.o1, s.o2,
      s.w0, s.w1, s.z = struct_unpack(KEY_FORMAT, value)
    s.K = #value > KEY_BYTES and struct_unpack(KEPT_FORMAT, value, KEY_BYTES + 1) or 0
    whole = is_key_state(s)
  end
  if whole then
    local changed = convert_key()
    if now <= s.t + life_of_key() then
      if changed then lane.changed_at = now end
      -- Written before a loss, it may lack what was granted last.
      if strict and lost_at > 0 and s.t < strict_from(lost_at) then
        advance_key(strict_from(lost_at))
        s.D = max(s.D, s.b * s.P)
      end
      return 0
    end
  elseif value or odd then
    fresh_key(now, now)
    lane.changed_at = now
    return DAMAGED
  end
  -- Times that were told under another epoch are of another clock.
  if now < full_at and lane.is_known then
    fresh_key(now, now)
    lane.changed_at = now
    return LOST
  end
  fresh_key(now, lost_at)
  return 0
end

-- Writes `state`. A value that says nothing any more may go; the data itself tells when (open_key),
-- the expiry only collects it.
local function save_key(key)
  local s = state
  if s.E < 1e-9 then s.E = 0 end
  if s.C < 1e-9 then s.C = 0 end
  if s.A < 1e-9 then s.A = 0 end
  local expiry = min(ceil(life_of_key() / 1000) + EXPIRY_MARGIN_MS, EXPIRY_MAX_MS)
  local value = struct_pack(KEY_FORMAT, s.L, s.P, s.b, s.D, s.t, s.E, s.C, s.A,
    s.O, s.Op, s.tS, s.S, s.q, s.o0, s.o1, s.o2, s.w0, s.w1, s.z)
  if s.K > full_with(s.D) then value = table.concat({ value, struct_pack(KEPT_FORMAT, s.K) }) end
  redis.call("SET", key, value, "PX", decimal(expiry))
end
