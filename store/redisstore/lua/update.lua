#!lua
-- update: edits of which some bring a new record, see edit.lua. A full server
-- refuses them, as it refuses new tasks.
--
-- KEYS  those of a shard
-- ARGV  1 count  then per task what edit.lua says
--       and last the moment (see call.lua)

-- include owner.lua
-- include call.lua
-- include edit.lua
