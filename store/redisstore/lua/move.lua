#!lua flags=allow-oom
-- move: edits that bring no new record, see edit.lua.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
--       11 history  12 marks  13 looks  14 attrs  15 index  16 log  17 order
-- ARGV  1 count  then per task what edit.lua says
--       and last the moment (see call.lua)

-- include owner.lua
-- include call.lua
-- include edit.lua
