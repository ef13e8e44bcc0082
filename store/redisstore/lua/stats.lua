#!lua flags=no-writes
-- stats: a shard's numbers.
--
-- KEYS  owner, tasks, running, dlq, done, looks, log, cells, parts, out
-- ARGV  1 guard
--
-- returns {us, seq, inbox, pending, ready, running, dead, done, node or false,
--   epoch or false, oldest pending due ms or false, 1 when there are keys else 0,
--   indexed or false (see index_state.lua), how many entries the log has,
--   life or false (see admit.lua), cells, parcels in both boxes and all queues}

-- include owner.lua
local node, taken, queued = unpack(redis.call('HMGET', OWNER, 'node', 'taken', 'queued'))
return {
  us, seq, inbox,
  redis.call('ZCOUNT', TASKS, '-inf', '(+inf'),
  redis.call('ZCOUNT', TASKS, '-inf', now),
  redis.call('HLEN', RUNNING) - redis.call('HEXISTS', RUNNING, ARGV[1]),
  redis.call('ZCARD', DLQ),
  redis.call('ZCARD', DONE),
  node, owner[2],
  redis.call('ZRANGE', TASKS, '-inf', '(+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2] or false,
  redis.call('EXISTS', LOOKS),
  owner[5],
  owner[6] and redis.call('XLEN', LOG) or 0,
  owner[7],
  owner[8] and redis.call('HLEN', CELLS) + redis.call('HLEN', PARTS) or 0,
  owner[8] and inbox - (tonumber(taken or 0) or 0) + redis.call('XLEN', OUT) + (queued or 0) or 0,
}
