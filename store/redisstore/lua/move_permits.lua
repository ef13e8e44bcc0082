#!lua flags=allow-oom
-- move_permits: make permits last until another moment.
--
-- KEYS  per request, all of one part: the permits (zset holder -> until ms)
-- ARGV  per request: number of holders, at most 1000, and for each until ms and
--       the holder
--
-- returns 1

local arg = 1
for _, permits in ipairs(KEYS) do
  local n = tonumber(ARGV[arg])
  redis.call('ZADD', permits, unpack(ARGV, arg + 1, arg + 2 * n))
  local last = redis.call('ZRANGE', permits, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', permits, string.format('%d', last + 1000))
  arg = arg + 1 + 2 * n
end
return 1
