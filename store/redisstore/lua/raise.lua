#!lua flags=allow-oom
-- raise: raise seq for a call that made tasks pending and broke off.
--
-- KEYS  owner
--
-- returns seq

return redis.call('HINCRBY', OWNER, 'seq', 1)
