#!lua
-- changes_waited: what changes returns, once replicas are to have it: something is written, so
-- that there is something to wait for.
--
-- KEYS  owner, log
-- ARGV  as of changes

if redis.call('EXISTS', OWNER) == 1 then redis.call('HSET', OWNER, 'waited', '') end
-- include log_page.lua
