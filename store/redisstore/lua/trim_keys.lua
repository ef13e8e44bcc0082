#!lua flags=allow-oom
-- trim_keys: forget idempotency keys that are free again.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
--       11 history  12 marks  13 looks
-- ARGV  1 most keys to look at, at most 1,000
--
-- returns how many it looked at

-- include owner.lua
-- include places.lua
-- include keys.lua
redis.call('HLEN', KEYS[12])
return forget(ARGV[1])
