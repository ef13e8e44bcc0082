#!lua flags=allow-oom
-- move: edits that bring no new record, see edit.lua.
--
-- KEYS  those of a shard
-- ARGV  1 count  then per task what edit.lua says
--       and last the moment (see call.lua)

-- include owner.lua
-- include call.lua
-- include edit.lua
