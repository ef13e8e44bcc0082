#!lua flags=no-writes
-- cells: cells by id.
--
-- KEYS  hash
--       it is cells or parts
-- ARGV  ids
--
-- returns what is stored of them, false for none; of the first ids only when the cells of
--   those fill the answer, see bodies.lua

-- include bodies.lua
return (bodies(HASH, ARGV, 1, #ARGV))
