#!lua flags=no-writes
-- scan: a page of a hash. It ends once it has MAX_BODIES bytes of values, and
-- takes steps that double, and of large values no more than there is room for.
--
-- KEYS  hash
-- ARGV  1 cursor  2 about how many fields  3 1 for the values, too  4 pattern that fields match,
--       not there for any
--
-- returns {cursor, fields}, or {cursor, field, value, ...}; the cursor is 0 at the end

local match = ARGV[4] and {'MATCH', ARGV[4]} or {}
local cursor, limit, values = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local out, n, left, largest, page, seen = {0}, 0, MAX_BODIES, 1, 1, 0
repeat
  local count = math.max(1, math.min(page, limit - n, math.ceil(left / largest)))
  local got = redis.call('HSCAN', HASH, cursor, 'COUNT', count, unpack(match))
  cursor = got[1]
  for i = 1, #got[2], 2 do
    local value = got[2][i + 1]
    n = n + 1
    out[#out + 1] = got[2][i]
    if values then out[#out + 1] = value end
    left = left - #value
    if #value > largest then largest = #value end
  end
  seen, page = seen + count, 2 * page
until cursor == '0' or n >= limit or left <= 0 or seen >= 4 * limit -- a hash may have room for more than it has
out[1] = cursor
return out
