#!lua
-- watch: have a shard keep a log, or end it.
--
-- KEYS  1 owner  2 log
-- ARGV  1 retention ms, 0 to end it  2 how many changes are kept at least
--
-- returns 1 when that is new, else 0

local now = redis.call('HGET', KEYS[1], 'watched')
local wanted = ARGV[1] ~= '0' and ARGV[1] .. ':' .. ARGV[2]
if now == wanted then return 0 end
redis.call('XLEN', KEYS[2])
if wanted then
  redis.call('HSET', KEYS[1], 'watched', wanted)
else
  redis.call('HINCRBY', KEYS[1], 'logged', 1)
  redis.call('HDEL', KEYS[1], 'watched')
  redis.call('UNLINK', KEYS[2])
end
return 1
