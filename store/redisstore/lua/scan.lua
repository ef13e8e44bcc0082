#!lua flags=no-writes
-- scan: a page of a hash. It ends once it has MAX_BODIES bytes of values. Its steps double, and of
-- large values ask for no more than there is room for.
-- Redis may give more in one step: a whole list, or all of a slot while the hash does not grow. Then
-- the page ends within the step. What a step gives has no order that outlives a rehash: the next page
-- goes on within it only if it gives the same fields in the same order, and else has all of them.
--
-- KEYS  hash
-- ARGV  1 cursor  2 about how many fields  3 1 for the values, too
--       4 what earlier pages had of the step at the cursor, empty for nothing
--       5 pattern that fields match, not there for any
--
-- returns {cursor, had, field, ...} or {cursor, had, field, value, ...}; the cursor is 0 at the end,
-- and had, the next page's 4, is empty unless this one ends within a step

local match = ARGV[5] and {'MATCH', ARGV[5]} or {}
local cursor, limit, values, had = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local out, n, left, largest, page, seen = {0, ''}, 0, MAX_BODIES, 1, 1, 0

-- step asks for fields from the cursor on.
local function step(count)
  local got = redis.call('HSCAN', HASH, cursor, 'COUNT', count, unpack(match))
  return got[2], got[1]
end

-- fits reports whether there is room for the values that a step gave.
local function fits(got)
  local bytes = 0
  for i = 2, #got, 2 do bytes = bytes + #got[i] end
  return bytes <= left
end

-- upTo says of a step that its first fields were told, as ARGV[4] does.
local function upTo(got, told)
  local names = {}
  for i = 1, #got, 2 do names[#names + 1] = #got[i] .. ':' .. got[i] end
  return told .. ':' .. redis.sha1hex(table.concat(names))
end

repeat
  local count = math.max(1, math.min(page, limit - n, math.ceil(left / largest)))
  local got, after = step(count)
  if values and count > 1 and not fits(got) then
    count = 1
    got, after = step(1)
  end
  local told, whole = 0, not values
  if had ~= '' then
    told = tonumber(string.match(had, '^%d+'))
    if upTo(got, told) ~= had then told, whole = 0, true end
    had = ''
  end
  for i = 2 * told + 1, #got, 2 do
    local value = got[i + 1]
    if not whole and n > 0 and #value > left then
      out[1], out[2] = cursor, upTo(got, (i - 1) / 2)
      return out
    end
    n = n + 1
    out[#out + 1] = got[i]
    if values then out[#out + 1] = value end
    left = left - #value
    if #value > largest then largest = #value end
  end
  cursor = after
  seen, page = seen + count, 2 * page
until cursor == '0' or n >= limit or left <= 0 or seen >= 4 * limit -- a hash may have room for more than it has
out[1] = cursor
return out
