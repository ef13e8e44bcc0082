#!lua flags=allow-oom
-- renew: make a node's session last for a while from now. The end is a field and
-- not a TTL, because TTLs jump when the server's clock is set.
--
-- KEYS  1 session
-- ARGV  1 start  2 ttl ms  3 address  4 1 to replace the session of another start
--
-- returns us, or -1 the session is of another start, or absent

local start = redis.call('HGET', KEYS[1], 'start')
if ARGV[4] ~= '1' and start ~= ARGV[1] then return -1 end
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
redis.call('HSET', KEYS[1], 'start', ARGV[1], 'expires', math.ceil(us / 1000) + ARGV[2], 'addr', ARGV[3])
return us
