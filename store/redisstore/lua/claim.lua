#!lua flags=allow-oom
-- claim: make a node the owner of a shard, unless the owner record has changed
-- since it was read.
--
-- The guards keep Redis from storing a short set as a list, which would make
-- every look-up in it a walk: one member too long for a list, behind all others.
--
-- KEYS  owner, tasks, data, running
-- ARGV  1 node, 2 epoch, 3 nonce as read, empty when absent
--       4 node, 5 start, 6 nonce of the claim  7 newest schema
--       that is known  8 schema of new shards  9 guard
--
-- returns {us, seq, inbox, epoch}, or -1 changed, or -2 the schema is a later one

-- include owner.lua
local current = redis.call('HMGET', OWNER, 'node', 'epoch', 'nonce', 'schema')
for i = 1, 3 do
  if (current[i] or '') ~= ARGV[i] then return -1 end
end
if current[4] and tonumber(current[4]) > tonumber(ARGV[7]) then return -2 end
local epoch = (tonumber(current[2]) or 0) + 1
redis.call('ZCARD', TASKS)
redis.call('HLEN', DATA)
redis.call('HLEN', RUNNING)
redis.call('HSET', OWNER, 'node', ARGV[4], 'start', ARGV[5], 'nonce', ARGV[6], 'epoch', epoch, 'schema', current[4] or ARGV[8])
redis.call('ZADD', TASKS, '+inf', ARGV[9])
redis.call('HSET', DATA, ARGV[9], '')
redis.call('HSET', RUNNING, ARGV[9], '')
return {us, seq, inbox, epoch}
