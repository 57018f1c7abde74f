--[[
reconcile: applies one batch of one pod, exactly once, and answers with what the pod may do next.

Runs every reconcile interval per pod and lane. A batch is known by pod, incarnation, lane and
sequence number; a repeated one changes no count and grants nothing, but is answered in full, so a
caller may send it again after a lost reply.

KEYS[1]   aliquot:{lane}:fleet:meta                       the lane's record (lib/lane.lua)
KEYS[2]   aliquot:{lane}:fleet:seq:pod:incarnation        last sequence number, the one before, when
KEYS[3..] aliquot:{group}:fleet:limit:digest              a key state per entry (lib/key-state.lua)

ARGV[1]   9 doubles: time in us, or below 0 for the clock of this server; sequence number, from 1;
          epoch the pod knows, 0 for none; heard_at, time of the last reply heard in this lane, us,
          0 for none; heard_ago, us since the call it answered was sent; tolerance of the clock, us;
          run, the number of the server process (lib/lane.lua); pods, at least 1; hold, the part of
          the refill held back, 0 to below 1
ARGV[2]   20 doubles per entry: refill, period, tick us, burst, interval s, max debt, cold (over all
          pods), lost 0..1, consumed (may be negative), demand, elapsed s, registered, held,
          own demand, replied at us, gap s, round trip s, want, flow, full_at us or 0
          (lib/key-state.lua); tokens where no unit is said

All doubles are little-endian and finite; the caller checks that.

Returns   4 doubles: corrected time us, epoch, sequence number applied before this batch,
          repeated 0|1; then 11 doubles per entry: level, available, flow rate tokens/s, target,
          granted, share 0..1, own demand, active pods, stock s, clipped, fault 0|1|2
          (lib/key-state.lua); tokens where no unit is said
Errors    none of its own, and none after the first write. A value that cannot be read is replaced.

Production sends no time: one clock decides, whatever the skew between nodes.
]]
-- @include lib/numbers.lua
-- @include lib/read.lua
-- @include lib/lane.lua
-- @include lib/key-state.lua

local ENTRY_FORMAT = "<" .. string.rep("d", 20)
local REPLY_FORMAT = "<" .. string.rep("d", 11)
local SEQ_FORMAT = "<ddd"
-- Must be longer than a pod keeps an unanswered batch, or it is applied twice.
local SEQ_LIFE = 600000000
local SEQ_LIFE_MS = "600000"
-- e: the gain at which a loop that answers a round late settles fastest without ringing.
local E1 = 2.718281828459045

local given, seq, epoch, heard_at, heard_ago, tolerance, run, pods, hold =
  struct_unpack("<ddddddddd", ARGV[1])
local values, odd = read_keys()
local lane =
  open_lane(values[1], odd[1], read_time(given), epoch, heard_at, heard_ago, tolerance, run)
local now = lane.now

local last_seq, previous_seq = 0, 0
local record = read_doubles(values[2], 3, SEQ_FORMAT)
if record and record[1] >= 1 and record[2] >= 0 and now - record[3] <= SEQ_LIFE then
  last_seq = record[1]
  previous_seq = last_seq
  if last_seq == seq then previous_seq = record[2] end
end
local repeated = last_seq >= seq
if not repeated then
  redis.call("SET", KEYS[2], struct_pack(SEQ_FORMAT, seq, last_seq, now), "PX", SEQ_LIFE_MS)
end

local out = { struct_pack("<dddd", now, lane.epoch, previous_seq, repeated and 1 or 0) }
local position = 1
for i = 3, #KEYS do
  local refill, period, tick, burst, interval, max_debt, cold, lost, consumed, demand, elapsed,
    registered, held, own, replied_at, gap, rtt, want, flow, full_at
  refill, period, tick, burst, interval, max_debt, cold, lost, consumed, demand, elapsed,
    registered, held, own, replied_at, gap, rtt, want, flow, full_at, position =
    struct_unpack(ENTRY_FORMAT, ARGV[2], position)
  set_limit(refill, period, tick, burst, max_debt, interval, lost, hold)
  local rate, tau = limit.rate, limit.tau

  local s = state
  -- What a failover has lost the pods report again: it is charged by that.
  local moved_at = lane.moved_at
  if moved_at > 0 and lost > 0 and replied_at < moved_at + STRICT_HOLD then full_at = 0 end
  local fault = open_key(values[i], odd[i], now, lane, full_at)
  advance_key(now)

  -- What the pod reports.
  local clipped = 0
  if not repeated then
    local leased = min(s.o0 + s.o1 + s.o2, burst) * period
    local deepest = (burst + max_debt) * period
    local deficit = s.D + consumed * period
    if deficit > deepest then
      clipped = (deficit - deepest) / period
      deficit = deepest
    end
    s.D = max(deficit, leased)
    s.E = s.E + demand
    s.C = s.C + max(0, consumed)
    -- A first report counts as a whole pod, a later one by its period: the sum reads tau per pod.
    if replied_at == 0 then s.A = s.A + tau else s.A = s.A + tau * (1 - expn(elapsed / tau)) end
    local registered_at = floor(replied_at / tick) * tick
    if registered_at >= s.tS then
      s.O = max(0, s.O - registered)
    elseif registered_at >= s.tS - s.S then
      s.Op = max(0, s.Op - registered)
    end
    s.O = s.O + held
  end

  -- The pod's share: its demand against all demand, with a prior that shares evenly. Its own part
  -- is averaged over the report's period, or the pod that reported last would look busiest.
  local since = 0
  if replied_at > 0 then since = max(0, (now - replied_at) / 1e6) end
  own = min(s.E, own * expn(since / tau) + demand)
  local x = elapsed / tau
  local mean = own
  if x > 1e-9 then mean = own * (1 - expn(x)) / x end
  local prior = max(rate * interval, min(0.1 * burst, pods))
  local share = (mean + prior / pods) / (max(0, s.E - own) + mean + prior)

  -- What is there: the level less what the others are expected to have spent and not yet told.
  local level = burst - s.D / period
  local available = level - (1 - share) * (s.C / tau) * (interval / 2 + rtt / 2)
  local part = share + (1 - share) * min(1 / E1, gap / (E1 * (gap + rtt)))
  local pace = 1 + min(0, available) / (rate * (E1 * (interval + rtt)))
  local flow_rate = share * rate * max(0, min(1, pace))

  -- Stock: whole tokens, only what the ledger has, and a cost that the pod could not cover first.
  -- Something stays behind for a pod that this one has not heard of yet, unless it is needed here;
  -- the more pods it knows of, the less.
  local there = max(0, available)
  local target = share * part * there
  if demand == 0 then target = min(min(target, cold / pods), held) end
  target = floor(target)
  local room = floor(available - s.O - s.Op)
  local grant = min(target - held, room - floor(there / (2 * pods * pods)))
  if want > 0 then
    local need = ceil(want - min(flow, max(1, flow_rate * interval)))
    if need - held > grant and need - held <= room then
      target = max(target, min(need, burst))
      grant = min(need, burst) - held
    end
  end
  local granted = 0
  if not repeated then granted = max(0, grant) end
  s.O = s.O + granted

  save_key(KEYS[i])
  out[i - 1] = struct_pack(REPLY_FORMAT, level, available, flow_rate, target, granted, share, own,
    max(1, s.A / tau), s.S / 1e6, clipped, fault)
end
save_lane(KEYS[1], lane)
return table.concat(out)
