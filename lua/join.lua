--[[
join: the heartbeat. Registers or renews one member of the fleet and counts the members.

KEYS[1]   aliquot:{0}:fleet:meta     the record of lane 0 (lib/lane.lua), whose clock scores members
KEYS[2]   aliquot:{0}:fleet:pods     sorted set, member -> corrected time of its last heartbeat, us
KEYS[3]   aliquot:{0}:fleet:costs    sorted set, limit -> corrected time of the last large cost, us

ARGV[1]   7 doubles: time in us, or below 0 for the clock of this server; epoch the pod knows in
          lane 0, 0 for none; heard_at, us; heard_ago, us; tolerance, us (all as in reconcile);
          timeout, us: a member silent for this long is dropped; silent_after, us
ARGV[2]   member: pod id "/" incarnation in hexadecimal digits
ARGV[3]   names of limits for which the pod saw a large cost, each ended by a line feed

Returns   5 doubles: corrected time us, epoch of lane 0, members (at least 1), silent members, band;
          then the names of limits with a large cost lately, each ended by a line feed
Errors    none of its own. Sets of another type are replaced, members of another shape are removed.

Band: the smallest power of two that is not below the members. It rises at once, and falls when all
counts of a minute have fitted below it, to the highest of them: what depends on the size of the
fleet must not change whenever a pod restarts.

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
-- Members late by more than a heartbeat that are looked at in one call.
local FORMER_MAX = 1000
local SET_LIFE_MIN_US = 60000000
local BAND_HOLD = 60000000
local COST_LIFE = 600000000
local COST_LIFE_MS = "600000"
-- Names remembered; the oldest go first.
local COSTS_MAX = 256

local given, epoch, heard_at, heard_ago, tolerance, timeout, silent_after =
  struct_unpack("<ddddddd", ARGV[1])
local member = ARGV[2]
local pods_key, costs_key = KEYS[2], KEYS[3]
-- The others are sorted sets, which MGET reads as empty: only the first result matters here.
local values, odd = read_keys()
local lane =
  open_lane(values[1], odd[1], read_time(given), epoch, heard_at, heard_ago, tolerance, 0)
local now = lane.now

-- Number of entries of a sorted set; one of another type is removed.
local function count_of(key)
  local count = redis.pcall("ZCARD", key)
  if type(count) ~= "table" then return count end
  redis.call("DEL", key)
  return 0
end

-- Drops what was heard at `oldest` or before. Heard in the future: the lane's record was lost and
-- with it the clock; it counts from now on.
local function trim(key, oldest)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", decimal(oldest))
  local after_now = "(" .. decimal(now)
  local ahead = redis.call("ZRANGEBYSCORE", key, after_now, "+inf", "LIMIT", 0, AHEAD_MAX)
  for i = 1, #ahead do redis.call("ZADD", key, decimal(now), ahead[i]) end
end

local unfinished = false
if count_of(pods_key) ~= lane.members then
  local all = redis.call("ZRANGE", pods_key, 0, SCAN_MAX - 1)
  unfinished = #all == SCAN_MAX
  for i = 1, #all do
    if not string.find(all[i], "^.+/%x+$") then redis.call("ZREM", pods_key, all[i]) end
  end
end
redis.call("ZADD", pods_key, decimal(now), member)
trim(pods_key, now - timeout)
-- What this pod was before it started anew is known to be gone, once it has missed a heartbeat:
-- counted as silent it would cost the others a part of the rate.
local pod = string.match(member, "^(.+)/") or member
local former = redis.call("ZRANGEBYSCORE", pods_key, "-inf",
  decimal(now - floor(0.6 * silent_after)), "LIMIT", 0, FORMER_MAX)
for i = 1, #former do
  if string.match(former[i], "^(.+)/") == pod then redis.call("ZREM", pods_key, former[i]) end
end
local silent = redis.call("ZCOUNT", pods_key, "-inf", decimal(now - silent_after))
local members = redis.call("ZCARD", pods_key)
lane.members = unfinished and 0 or members
redis.call("PEXPIRE", pods_key, decimal(ceil(max(2 * timeout, SET_LIFE_MIN_US) / 1000)))

local fit = 1
while fit < members do fit = fit * 2 end
if fit >= lane.band then
  lane.band, lane.next_band, lane.next_since = fit, 0, 0
elseif lane.next_band == 0 then
  lane.next_band, lane.next_since = fit, now
else
  lane.next_band = max(lane.next_band, fit)
  if now - lane.next_since >= BAND_HOLD then
    lane.band, lane.next_band, lane.next_since = lane.next_band, 0, 0
  end
end
save_lane(KEYS[1], lane)

local costs = count_of(costs_key)
for name in string.gmatch(ARGV[3], "([^\n]+)\n") do
  redis.call("ZADD", costs_key, decimal(now), name)
  costs = costs + 1
end
local out = { struct_pack("<ddddd", now, lane.epoch, members, silent, lane.band) }
if costs > 0 then
  trim(costs_key, now - COST_LIFE)
  redis.call("ZREMRANGEBYRANK", costs_key, 0, -COSTS_MAX - 1)
  redis.call("PEXPIRE", costs_key, COST_LIFE_MS)
  local names = redis.call("ZRANGE", costs_key, 0, -1)
  for i = 1, #names do
    out[2 * i] = names[i]
    out[2 * i + 1] = "\n"
  end
end
return table.concat(out)
