#!lua flags=allow-oom
-- move_permits: make permits last until another moment.
--
-- KEYS  the permits (zset holder -> until ms), one per holder, all of one part
-- ARGV  per key, in order: holder, until ms
--
-- returns 1

for i, permits in ipairs(KEYS) do
  redis.call('ZADD', permits, ARGV[2 * i], ARGV[2 * i - 1])
  local last = redis.call('ZRANGE', permits, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', permits, string.format('%d', last + 1000))
end
return 1
