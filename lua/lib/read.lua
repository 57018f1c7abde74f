-- @include numbers.lua
--
-- Reads all keys of a call in one command, before the first write: Redis does not undo a script
-- that fails half way, so nothing may be able to fail once something is written.

-- Values of KEYS in order; false for a key that is absent or of another type. The second result
-- tells the latter: odd[i] is true for a key that exists and is no string. MGET passes over a wrong
-- type without an error, and one EXISTS over all that came back empty finds whether there is any.
local function read_keys()
  local values = redis.call("MGET", unpack(KEYS))
  local odd = {}
  local absent = {}
  for i = 1, #KEYS do
    if not values[i] then absent[#absent + 1] = KEYS[i] end
  end
  if #absent > 0 and redis.call("EXISTS", unpack(absent)) > 0 then
    for i = 1, #KEYS do
      if not values[i] and redis.call("EXISTS", KEYS[i]) == 1 then odd[i] = true end
    end
  end
  return values, odd
end

-- Time of this server in whole us, or the time that a test sends instead (negative for none).
local function read_time(given)
  if given >= 0 then return given end
  local time = redis.call("TIME")
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end
