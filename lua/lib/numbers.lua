-- Arithmetic that gives the same bits in Lua and in JavaScript.
--
-- The embedded store (src/store/embedded) computes the same rules in TypeScript, and a test demands
-- equal bytes. So only + - * / and these functions are used, in the same order on both sides.
-- math.exp is not: C and V8 differ in the last bit for one argument in twenty.
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local struct_unpack, struct_pack = struct.unpack, struct.pack

-- Whole numbers below this are exact in a double; nothing stored may reach it.
local SAFE = 9007199254740992

-- A number as a command wants it: without the exponent that the `..` operator writes from 1e14 on.
local function decimal(x)
  return string.format("%.0f", x)
end

-- exp(-x) for x >= 0, 1 for anything below, 0 from 50 on: five terms of the series for x/1024, then
-- ten squarings.
local function expn(x)
  if not (x > 0) then return 1 end
  if x >= 50 then return 0 end
  local y = x / 1024
  local p = 1 - y * (1 - (y / 2) * (1 - (y / 3) * (1 - (y / 4) * (1 - y / 5))))
  for _ = 1, 10 do p = p * p end
  return p
end

-- `count` little-endian doubles out of a stored value, or nothing when it cannot be one of ours:
-- another length, a NaN, an infinity, a number that is not exact. The caller judges the rest.
local function read_doubles(value, count, format)
  if not value or #value ~= count * 8 then return nil end
  local numbers = { struct_unpack(format, value) }
  for i = 1, count do
    local x = numbers[i]
    if not (x > -SAFE and x < SAFE) then return nil end
  end
  return numbers
end
