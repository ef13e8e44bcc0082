#!lua flags=no-writes
-- stats: a shard's numbers.
--
-- KEYS  owner, tasks, running, dlq, done, looks, log
-- ARGV  1 guard
--
-- returns {us, seq, pending, ready, running, dead, done, node or false,
--   epoch or false, oldest pending due ms or false, 1 when there are keys else 0,
--   indexed or false (see index_state.lua), how many entries the log has,
--   life or false (see admit.lua)}

-- include owner.lua
local node = redis.call('HGET', OWNER, 'node')
return {
  us, seq,
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
}
