#!lua flags=allow-oom
-- trim_keys: forget idempotency keys that are free again.
--
-- KEYS  those of a shard
-- ARGV  1 most keys to look at, at most 1,000
--
-- returns how many it looked at

-- include owner.lua
-- include places.lua
-- include keys.lua
redis.call('HLEN', MARKS)
return forget(ARGV[1])
