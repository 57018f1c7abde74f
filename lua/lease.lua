--[[
lease: hands out tokens beforehand, and takes in what became of earlier ones, for leased mode.

Sent once and never again: a grant whose answer is lost lapses with its lease slot, and so does a
report. A call that comes too late (is_stale) grants nothing; what it reports counts. A call without
entries is a probe; it tells time and epoch.

KEYS[1]   aliquot:{lane}:fleet:meta                       the lane's record (lib/lane.lua)
KEYS[2..] aliquot:{group}:fleet:limit:digest              a key state per entry (lib/key-state.lua)

ARGV[1]   9 doubles: time in us, or below 0 for the clock of this server; epoch the pod knows, 0 for
          none; heard_at, time of the last reply heard in this lane, us, 0 for none; heard_ago, us
          since the call it answered was sent; tolerance of the clock, us; run, the number of the
          server process (lib/lane.lua); hold, the part of the refill held back, 0 to below 1;
          raw_heard and raw_ago, the same as heard_at and heard_ago by the server's own clock, for
          the last take or lease that was answered
ARGV[2]   per entry 18 doubles: refill, period, tick us, burst, max debt, interval s, lost 0..1,
          demand, full_at us or 0 (lib/key-state.lua), need, unit, want, elapsed s (below 0 for a
          first call), own demand, replied at us, cycle s, low, number of reports; then per report 3
          doubles: lease slot, tokens spent, tokens returned

All doubles are little-endian and finite, tokens are whole, no key comes twice; the caller checks
that.

Returns   4 doubles: corrected time us, epoch, the server's own time us, stale 0|1; then per entry
          7 doubles: granted, lease slot of the
          grant, level less the stock of hybrid pods, active pods, own demand, time to ask again us
          or 0, fault 0|1|2 (lib/key-state.lua)
Errors    none of its own, and none after the first write. A value that cannot be read is replaced.

A lease slot is known by its number; it ends at number times slot length. Tokens in leases are out
of the bucket until they are spent, returned, or their slot ends. They are spent or returned only
after the refill has reached now: refilling the time before with the sum of after would pay them
twice. Of a slot that has ended, what was spent is settled, for the bucket never got it back; what
was not spent comes back less what has refilled since the slot's end (give_back).
]]
-- @include lib/numbers.lua
-- @include lib/read.lua
-- @include lib/lane.lua
-- @include lib/key-state.lua
-- @include lib/store-call.lua

local ENTRY_FORMAT = "<dddddddddddddddddd"
local REPLY_FORMAT = "<ddddddd"
local SLOTS = { "o0", "o1", "o2" }

local given, epoch, heard_at, heard_ago, tolerance, run, hold, raw_heard, raw_ago =
  struct_unpack("<ddddddddd", ARGV[1])
local values, odd = read_keys()
local lane =
  open_lane(values[1], odd[1], read_time(given), epoch, heard_at, heard_ago, tolerance, run)
local now = lane.now
local stale = is_stale(lane, raw_heard, raw_ago, tolerance)

local out = { struct_pack("<dddd", now, lane.epoch, now - lane.offset, stale and 1 or 0) }
local position = 1
for i = 2, #KEYS do
  local refill, period, tick, burst, max_debt, interval, lost, demand, full_at, need, unit, want,
    elapsed, own, replied_at, cycle, low, reports
  refill, period, tick, burst, max_debt, interval, lost, demand, full_at, need, unit, want,
    elapsed, own, replied_at, cycle, low, reports, position =
    struct_unpack(ENTRY_FORMAT, ARGV[2], position)
  set_limit(refill, period, tick, burst, max_debt, interval, lost, hold)
  local s = state
  local fault = open_key(values[i], odd[i], now, lane, full_at)
  advance_key(now)
  local slot_now = floor(s.t / limit.lease_slot)

  for _ = 1, reports do
    local slot, spent, returned
    slot, spent, returned, position = struct_unpack("<ddd", ARGV[2], position)
    s.C = s.C + max(0, spent)
    local name = SLOTS[slot - slot_now]
    if slot <= slot_now then
      local slot_end = slot * limit.lease_slot
      give_back(returned, slot_end - 3 * limit.lease_slot, slot_end, false, now, lane)
    elseif name then
      s[name] = s[name] - min(max(0, spent), s[name])
      local unused = min(max(0, returned), s[name])
      s[name] = s[name] - unused
      put_back(unused * s.P)
    end
  end

  s.E = s.E + demand
  local new = 1
  if elapsed >= 0 then new = 1 - expn(elapsed / limit.tau) end
  s.A = s.A + limit.tau * new
  local active = max(1, s.A / limit.tau)
  local since = 0
  if replied_at > 0 then since = max(0, (now - replied_at) / 1e6) end
  own = min(s.E, own * expn(since / limit.tau) + demand)
  local part = 0
  if s.E > 0 then part = own / s.E end
  local share = min(1, 2 * max(1 / active, part))

  local room = room_of_key()
  local available = whole_below(room, period)
  local granted = 0
  if not stale and available >= max(1, unit) then
    granted = min(available, max(need, min(want, max(1, floor(available * share)))))
  end
  granted = max(0, granted)
  s.D = s.D + granted * period
  s.o2 = s.o2 + granted
  room = room - granted * period

  local retry_at = 0
  if not stale and granted < want and (granted < need or room / period < low) then
    local missing = 0
    if granted < need or granted == 0 then missing = max(1, unit) * period - room end
    local spread = max(ceil(1e6 * cycle / active), ticket_spread())
    retry_at = give_ticket(now, missing, spread)
  end
  keep_told_room()
  save_key(KEYS[i])
  out[i] =
    struct_pack(REPLY_FORMAT, granted, slot_now + 3, room / period, active, own, retry_at, fault)
end
save_lane(KEYS[1], lane)
return table.concat(out)
