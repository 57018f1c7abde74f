--[[
take: decides costs here, in order, for limits in exact mode.

Sent once and never again: it is not known whether a take without an answer was applied, and its
tokens count as spent. A call that comes too late (is_stale) admits and denies nothing; what it
gives back counts. A call without entries is a probe; it tells time and epoch.

KEYS[1]   aliquot:{lane}:fleet:meta                       the lane's record (lib/lane.lua)
KEYS[2..] aliquot:{group}:fleet:limit:digest              a key state per entry (lib/key-state.lua)

ARGV[1]   9 doubles: time in us, or below 0 for the clock of this server; epoch the pod knows, 0 for
          none; heard_at, time of the last reply heard in this lane, us, 0 for none; heard_ago, us
          since the call it answered was sent; tolerance of the clock, us; run, the number of the
          server process (lib/lane.lua); hold, the part of the refill held back, 0 to below 1;
          raw_heard and raw_ago, the same as heard_at and heard_ago by the server's own clock, for
          the last take or lease that was answered
ARGV[2]   per entry 12 doubles: refill, period, tick us, burst, max debt, interval s, lost 0..1,
          demand, full_at us or 0 (lib/key-state.lua), tokens to give back, time of their take us,
          number of runs; per run 2 doubles: cost, and how many checks of this cost come one behind
          the other

All doubles are little-endian, finite and not negative but for the time; costs and counts are whole;
no key comes twice; the caller checks that.

Returns   4 doubles: corrected time us, epoch, the server's own time us, stale 0|1; then per entry
          4 doubles: level less the stock of
          hybrid pods, smallest cost denied or 0, time to ask for it again us or 0, fault 0|1|2
          (lib/key-state.lua); and per run how many were admitted
Errors    none of its own, and none after the first write. A value that cannot be read is replaced.
]]
-- @include lib/numbers.lua
-- @include lib/read.lua
-- @include lib/lane.lua
-- @include lib/key-state.lua
-- @include lib/store-call.lua

local ENTRY_FORMAT = "<dddddddddddd"

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
  local refill, period, tick, burst, max_debt, interval, lost, demand, full_at, back, taken_at,
    runs
  refill, period, tick, burst, max_debt, interval, lost, demand, full_at, back, taken_at, runs,
    position = struct_unpack(ENTRY_FORMAT, ARGV[2], position)
  set_limit(refill, period, tick, burst, max_debt, interval, lost, hold)
  local s = state
  local fault = open_key(values[i], odd[i], now, lane, full_at)
  advance_key(now)

  give_back(back, taken_at, taken_at, true, now, lane)
  s.E = s.E + demand

  -- In order, each that fits. Of equal costs in a row the first ones fit, so they need no loop.
  local room = room_of_key()
  local denied = 0
  local head = #out + 1
  out[head] = ""
  for r = 1, runs do
    local cost, count
    cost, count, position = struct_unpack("<dd", ARGV[2], position)
    local price = cost * period
    local admitted = count
    if stale then
      admitted = 0
    elseif price > 0 then
      admitted = max(0, min(count, whole_below(room, price)))
    end
    if not stale and admitted < count and (denied == 0 or cost < denied) then denied = cost end
    room = room - admitted * price
    s.D = s.D + admitted * price
    s.C = s.C + admitted * cost
    s.w1 = s.w1 + admitted * cost
    out[head + r] = struct_pack("<d", admitted)
  end

  local retry_at = 0
  if denied > 0 then retry_at = give_ticket(now, denied * period - room, ticket_spread()) end
  keep_told_room()
  save_key(KEYS[i])
  out[head] = struct_pack("<dddd", room / period, denied, retry_at, fault)
end
save_lane(KEYS[1], lane)
return table.concat(out)
