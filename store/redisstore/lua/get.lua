#!lua flags=no-writes
-- get: tasks as they stand.
--
-- KEYS  those of a shard
-- ARGV  ids
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, places, records, cells}
--   places   {place, detail, note} per task
--   records  of data, false when there is none; of the first ids only when the records of
--            those fill the answer, see bodies.lua
--   cells    that the tasks tell, false for none; not there when no task of the shard tells any

-- include owner.lua
-- include call.lua
-- include places.lua
-- include bodies.lua
-- include parcels.lua
return {us, seq, inbox, places(ARGV), (bodies(DATA, ARGV, 1, #ARGV)), tells and cells_of(ARGV) or nil}
