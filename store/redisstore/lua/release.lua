#!lua flags=allow-oom
-- release: end a claim; the epoch stays, so that the next one is higher.
--
-- KEYS  owner
-- ARGV  1 epoch  2 nonce
--
-- returns 1, or -1 fenced

local owner = redis.call('HMGET', OWNER, 'epoch', 'nonce')
if owner[1] ~= ARGV[1] or owner[2] ~= ARGV[2] then return -1 end
redis.call('HDEL', OWNER, 'node', 'start', 'nonce')
return 1
