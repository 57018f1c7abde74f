-- @include read.lua
--
-- The meta record of a lane: one clock for all calls, and the memory of data losses.
--
-- Value: 6 doubles. epoch; created; lost_at (0: nothing was lost); offset; last; members. Times are
-- us; `members` is used by join.lua in lane 0 only. The record lives for 7 days after a call.
--
-- The clock. Redis's clock may step; no key may be refilled for a step, and none may stand still.
-- corrected time = TIME + offset, and the offset takes up each step: back, seen against the last
-- corrected time; forward, seen against what the calling pod's monotonic clock has measured since
-- the last reply it heard in this lane (`heard_at`, `heard_ago`), beyond a tolerance.
--
-- Data loss. A missing meta record and a pod that knows an epoch mean that keys were lost. Absent
-- keys then start low (key-state.lua). A pod without an epoch is a first start, which is no loss.
local META_FIELDS = 6
local META_FORMAT = "<dddddd"
local META_MS = "604800000"

-- Returns the lane's record with `now`, its corrected time in us.
local function open_lane(value, odd, raw, epoch, heard_at, heard_ago, tolerance)
  local m = read_doubles(value, META_FIELDS, META_FORMAT)
  if m and not (m[1] > 0 and m[2] > 0 and m[3] >= 0 and m[5] >= 0 and m[6] >= 0) then m = nil end
  local lane
  if m then
    lane = { epoch = m[1], created = m[2], lost_at = m[3] }
    lane.offset, lane.last, lane.members = m[4], m[5], m[6]
    -- Another pod renewed the record after a loss and did not know of it.
    if epoch ~= 0 and epoch ~= lane.epoch and lane.lost_at == 0 then lane.lost_at = lane.created end
  else
    lane = { epoch = raw + 1, created = raw, lost_at = 0, offset = 0, last = raw, members = 0 }
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
  return lane
end

local function save_lane(key, lane)
  redis.call("SET", key, struct_pack(META_FORMAT, lane.epoch, lane.created, lane.lost_at,
    lane.offset, lane.last, lane.members), "PX", META_MS)
end
