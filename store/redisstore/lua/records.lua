#!lua flags=no-writes
-- records: the records of tasks, as many as bodies.lua reads at once.
--
-- KEYS  owner, tasks, data
-- ARGV  ids
--
-- returns the records, false for none

-- include bodies.lua
return (bodies(DATA, ARGV, 1, #ARGV))
