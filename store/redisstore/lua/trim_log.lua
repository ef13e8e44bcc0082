#!lua flags=allow-oom
-- trim_log: forget changes that are older than the retention.
--
-- KEYS  owner, log
-- ARGV  1 about how many
--
-- returns how many it has forgotten

local watched = redis.call('HGET', OWNER, 'watched')
if not watched then return 0 end
local clock = redis.call('TIME')
local kept = clock[1] * 1000000 + clock[2] - string.match(watched, '%d+') * 1000
local n, limit = 0, tonumber(ARGV[1])
local old, from, size = '', '-', 1 -- most often the first entry is kept, and an entry may be large
repeat
  local page = redis.call('XRANGE', LOG, from, '+', 'COUNT', size)
  local more = #page == size
  size = math.min(2 * size, 64)
  for _, entry in ipairs(page) do
    local at, count = struct.unpack('>i8I4', entry[2][2])
    if at >= kept or n >= limit then
      more = false
      break
    end
    n = n + count
    from = '(' .. entry[1]
    old = entry[1]
  end
until not more
if n > 0 then redis.call('XTRIM', LOG, 'MINID', string.match(old, '%d+') + 1) end
return n
