#!lua flags=no-writes
-- scan: a page of a hash. It ends once it has MAX_BODIES bytes of values, and
-- takes steps that double, and of large values no more than there is room for. Redis may give more
-- in one step: a whole list, or all of a slot while the hash does not grow. Then the page ends
-- within the step, and the next one begins with that behind the last field.
--
-- KEYS  hash
-- ARGV  1 cursor  2 about how many fields  3 1 for the values, too
--       4 field of the step at the cursor behind which to begin, empty for the first
--       5 pattern that fields match, not there for any
--
-- returns {cursor, last, fields}, or {cursor, last, field, value, ...}; the cursor is 0 at the end, and
-- last is empty unless the page ends within a step

local match = ARGV[5] and {'MATCH', ARGV[5]} or {}
local cursor, limit, values, last = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local out, n, left, largest, page, seen = {0, ''}, 0, MAX_BODIES, 1, 1, 0

-- step asks for fields from the cursor on, and returns where those begin that are new.
local function step(count)
  local got = redis.call('HSCAN', HASH, cursor, 'COUNT', count, unpack(match))
  if last == '' then return got, 1 end
  for i = 1, #got[2], 2 do
    if got[2][i] == last then return got, i + 2 end
  end
  return got, 1 -- the last field is gone: what was told is told again
end

-- fits reports whether there is room for what a step gave, and for one field in any case.
local function fits(got, from)
  local bytes = 0
  for i = from, #got[2], 2 do bytes = bytes + #got[2][i + 1] end
  return bytes <= left
end

repeat
  local count = math.max(1, math.min(page, limit - n, math.ceil(left / largest)))
  local got, from = step(count)
  if values and count > 1 and not fits(got, from) then
    count, got, from = 1, step(1)
  end
  local whole = true
  for i = from, #got[2], 2 do
    local value = got[2][i + 1]
    if values and n > 0 and #value > left then
      whole = false
      break
    end
    n, last = n + 1, got[2][i]
    out[#out + 1] = last
    if values then out[#out + 1] = value end
    left = left - #value
    if #value > largest then largest = #value end
  end
  if not whole then
    out[1], out[2] = cursor, last
    return out
  end
  cursor, last = got[1], ''
  seen, page = seen + count, 2 * page
until cursor == '0' or n >= limit or left <= 0 or seen >= 4 * limit -- a hash may have room for more than it has
out[1] = cursor
return out
