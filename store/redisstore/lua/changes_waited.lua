#!lua
-- changes_waited: what changes returns, once replicas are to have it: something is written, so
-- that there is something to wait for.
--
-- KEYS  1 owner  2 log
-- ARGV  as of changes

if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'waited', '') end
-- include log_page.lua
