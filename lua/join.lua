--[[
join: the heartbeat. Registers or renews one member of the fleet and counts the members.

KEYS[1]   aliquot:{0}:fleet:meta     the record of lane 0 (lib/lane.lua), whose clock scores members
KEYS[2]   aliquot:{0}:fleet:pods     sorted set, member -> corrected time of its last heartbeat, us

ARGV[1]   7 doubles: time in us, or below 0 for the clock of this server; epoch the pod knows in
          lane 0, 0 for none; heard_at, us; heard_ago, us; tolerance, us (all as in reconcile);
          timeout, us: a member silent for this long is dropped; silent_after, us
ARGV[2]   member: pod id "/" incarnation in hexadecimal digits

Returns   4 doubles: corrected time us, epoch of lane 0, members (at least 1), silent members
Errors    none of its own. A set of another type is replaced, members of another shape are removed.

Whether all members have the right shape is looked at only when their number is not the one that the
last heartbeat left, so a heartbeat costs the same in a fleet of any size. Calling it twice changes
nothing but times.
]]
-- @include lib/numbers.lua
-- @include lib/read.lua
-- @include lib/lane.lua

-- Members looked at in one call: what is left waits for the next heartbeat.
local SCAN_MAX = 10000
local AHEAD_MAX = 1000
local SET_LIFE_MIN_US = 60000000

local given, epoch, heard_at, heard_ago, tolerance, timeout, silent_after =
  struct_unpack("<ddddddd", ARGV[1])
local member = ARGV[2]
local pods_key = KEYS[2]
-- KEYS[2] is a sorted set, which MGET reads as empty: only the first result matters here.
local values, odd = read_keys()
local lane = open_lane(values[1], odd[1], read_time(given), epoch, heard_at, heard_ago, tolerance)
local now = lane.now

local known = redis.pcall("ZCARD", pods_key)
if type(known) == "table" then
  redis.call("DEL", pods_key)
  known = 0
end
local unfinished = false
if known ~= lane.members then
  local all = redis.call("ZRANGE", pods_key, 0, SCAN_MAX - 1)
  unfinished = #all == SCAN_MAX
  for i = 1, #all do
    if not string.find(all[i], "^.+/%x+$") then redis.call("ZREM", pods_key, all[i]) end
  end
end

redis.call("ZADD", pods_key, decimal(now), member)
redis.call("ZREMRANGEBYSCORE", pods_key, "-inf", decimal(now - timeout))
-- Heard in the future: the lane's record was lost and with it the clock. They count from now on.
local after_now = "(" .. decimal(now)
local ahead = redis.call("ZRANGEBYSCORE", pods_key, after_now, "+inf", "LIMIT", 0, AHEAD_MAX)
for i = 1, #ahead do redis.call("ZADD", pods_key, decimal(now), ahead[i]) end
local silent = redis.call("ZCOUNT", pods_key, "-inf", decimal(now - silent_after))

local members = redis.call("ZCARD", pods_key)
lane.members = unfinished and 0 or members
save_lane(KEYS[1], lane)
local life = max(2 * timeout, SET_LIFE_MIN_US)
redis.call("PEXPIRE", pods_key, decimal(ceil(life / 1000)))
return struct_pack("<dddd", now, lane.epoch, members, silent)
