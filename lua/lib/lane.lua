-- @include read.lua
--
-- The meta record of a lane: one clock for all calls, and the memory of data losses.
--
-- Value: 12 doubles. epoch; created; lost_at (0: nothing was lost); offset; last; run (0: not
-- known); moved_at (0: never); changed_at (0: never), when a key was last put under other terms or
-- replaced, so that nothing taken before is given back (store-call.lua); members, band, next_band,
-- next_since, which join.lua uses in lane 0 only. Times are us. The record lives for 7 days after a
-- call.
--
-- The clock. Redis's clock may step; no key may be refilled for a step, and none may stand still.
-- corrected time = TIME + offset, and the offset takes up each step: back, seen against the last
-- corrected time; forward, seen against what the calling pod's monotonic clock has measured since
-- the last reply it heard in this lane (`heard_at`, `heard_ago`), beyond a tolerance.
--
-- Data loss. A missing meta record and a pod that knows an epoch mean that keys were lost. Absent
-- keys then start low (key-state.lua). A pod without an epoch is a first start, which is no loss.
--
-- Failover. The epoch is replicated, so a replica that takes over looks whole and may still lack
-- the last writes. `run` names the server process that the record was written on; another one now
-- means that something may be missing since `moved_at`. Only strict limits act on it: the others
-- repair themselves by what the pods send again.
local META_FIELDS = 12
local META_FORMAT = "<dddddddddddd"
local META_MS = "604800000"

local function is_lane(m)
  return m[1] > 0 and m[2] > 0 and m[3] >= 0 and m[5] >= 0 and m[6] >= 0 and m[7] >= 0
    and m[8] >= 0 and m[9] >= 0 and m[10] >= 0 and m[11] >= 0
    and m[12] >= 0
end

-- The first 48 bits of this server's run id, 0 when INFO is refused. On a cluster the caller cannot
-- know which node will run the script.
local function own_run()
  local info = redis.pcall("INFO", "server")
  if type(info) ~= "string" then return 0 end
  return tonumber(string.match(info, "run_id:(%x%x%x%x%x%x%x%x%x%x%x%x)") or "0", 16)
end

-- Returns the lane's record with `now`, its corrected time in us. `run` is the number of the server
-- process, 0 when the caller does not know it, below 0 to look it up here.
local function open_lane(value, odd, raw, epoch, heard_at, heard_ago, tolerance, run)
  local m = read_doubles(value, META_FIELDS, META_FORMAT)
  if m and not is_lane(m) then m = nil end
  local lane
  if m then
    lane = { epoch = m[1], created = m[2], lost_at = m[3] }
    lane.offset, lane.last, lane.run, lane.moved_at = m[4], m[5], m[6], m[7]
    lane.changed_at = m[8]
    lane.members, lane.band, lane.next_band, lane.next_since = m[9], m[10], m[11], m[12]
    -- Another pod renewed the record after a loss and did not know of it.
    if epoch ~= 0 and epoch ~= lane.epoch and lane.lost_at == 0 then lane.lost_at = lane.created end
  else
    lane = { epoch = raw + 1, created = raw, lost_at = 0, offset = 0, last = raw, run = 0 }
    lane.moved_at, lane.changed_at = 0, 0
    lane.members, lane.band, lane.next_band, lane.next_since = 0, 0, 0, 0
    if epoch ~= 0 or value or odd then lane.lost_at = raw end
  end
  local now = raw + lane.offset
  if now < lane.last then
    lane.offset = lane.offset + (lane.last - now)
    now = lane.last
  end
  if heard_at > 0 and epoch == lane.epoch then
    local ahead = now - heard_at - floor(heard_ago)
    if ahead > tolerance then
      local cut = min(ahead, now - lane.last)
      lane.offset = lane.offset - cut
      now = now - cut
    end
  end
  lane.last = now
  lane.now = now
  lane.is_known = epoch == lane.epoch
  if run < 0 then run = own_run() end
  if run > 0 then
    if lane.run > 0 and lane.run ~= run then lane.moved_at = now end
    lane.run = run
  end
  return lane
end

local function save_lane(key, lane)
  redis.call("SET", key, struct_pack(META_FORMAT, lane.epoch, lane.created, lane.lost_at,
    lane.offset, lane.last, lane.run, lane.moved_at, lane.changed_at,
    lane.members, lane.band, lane.next_band, lane.next_since), "PX", META_MS)
end
