#!lua flags=no-writes
-- get: tasks as they stand.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes  11 history
-- ARGV  ids
--       and last the moment (see call.lua)
--
-- returns {us, seq, places, records}
--   places   {place, detail, note} per task
--   records  of data, false when there is none

-- include owner.lua
-- include call.lua
-- include places.lua
return {us, seq, places(ARGV), redis.call('HMGET', KEYS[3], unpack(ARGV))}
