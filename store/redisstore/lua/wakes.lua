#!lua flags=no-writes
-- wakes: when cells wake, behind a position, up to a moment.
--
-- KEYS  owner, set
--       the set is wakes
-- ARGV  1 ms and 2 id of the position, both empty for the start
--       3 last ms, as in ZCOUNT  4 most entries
--
-- returns {us, seq, inbox, entries: id, ms, id, ms, ...}

-- include owner.lua
-- include in_window.lua
return {us, seq, inbox, in_window()}
