#!lua flags=no-writes
-- stats: a shard's numbers.
--
-- KEYS  1 owner  2 tasks  3 running  4 dlq  5 done  6 looks  7 log
-- ARGV  1 guard
--
-- returns {us, seq, pending, ready, running, dead, done, node or false,
--   epoch or false, oldest pending due ms or false, 1 when there are keys else 0,
--   indexed or false (see index_state.lua), how many entries the log has}

-- include owner.lua
local node = redis.call('HGET', KEYS[1], 'node')
return {
  us, seq,
  redis.call('ZCOUNT', KEYS[2], '-inf', '(+inf'),
  redis.call('ZCOUNT', KEYS[2], '-inf', now),
  redis.call('HLEN', KEYS[3]) - redis.call('HEXISTS', KEYS[3], ARGV[1]),
  redis.call('ZCARD', KEYS[4]),
  redis.call('ZCARD', KEYS[5]),
  node, owner[2],
  redis.call('ZRANGE', KEYS[2], '-inf', '(+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2] or false,
  redis.call('EXISTS', KEYS[6]),
  owner[5],
  owner[6] and redis.call('XLEN', KEYS[7]) or 0,
}
