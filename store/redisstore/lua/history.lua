#!lua flags=no-writes
-- history: what the attempts of tasks left behind.
--
-- KEYS  history
-- ARGV  ids
--
-- returns per task what is kept (see remember.lua; the result of a done task is an
--   entry without anything but outcome 0 and the bytes), false when there is nothing

return redis.call('HMGET', HISTORY, unpack(ARGV))
