#!lua flags=no-writes
-- get: tasks as they stand.
--
-- KEYS  those of a shard
-- ARGV  ids
--       and last the moment (see call.lua)
--
-- returns {us, seq, places, records}
--   places   {place, detail, note} per task
--   records  of data, false when there is none; of the first ids only when the records of
--            those fill the answer, see bodies.lua

-- include owner.lua
-- include call.lua
-- include places.lua
-- include bodies.lua
return {us, seq, places(ARGV), bodies(ARGV, 1, #ARGV)}
