#!lua flags=allow-oom
-- raise: raise seq for a call that made tasks pending and broke off.
--
-- KEYS  1 owner
--
-- returns seq

return redis.call('HINCRBY', KEYS[1], 'seq', 1)
