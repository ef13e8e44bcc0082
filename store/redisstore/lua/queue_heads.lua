#!lua flags=no-writes
-- queue_heads: the first messages of queues.
--
-- KEYS  the streams of some queues of a shard
--
-- returns per queue its first entry, or false

local heads = {}
for i, key in ipairs(KEYS) do heads[i] = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1] or false end
return heads
