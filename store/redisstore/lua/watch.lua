#!lua
-- watch: have a shard keep a log, or end it.
--
-- KEYS  owner, log
-- ARGV  1 retention ms, 0 to end it  2 how many changes are kept at least
--
-- returns 1 when that is new, else 0

local now = redis.call('HGET', OWNER, 'watched')
local wanted = ARGV[1] ~= '0' and ARGV[1] .. ':' .. ARGV[2]
if now == wanted then return 0 end
redis.call('XLEN', LOG)
if wanted then
  redis.call('HSET', OWNER, 'watched', wanted)
else
  redis.call('HINCRBY', OWNER, 'logged', 1)
  redis.call('HDEL', OWNER, 'watched')
  redis.call('UNLINK', LOG)
end
return 1
