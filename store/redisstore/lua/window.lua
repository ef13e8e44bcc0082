#!lua flags=no-writes
-- window: entries of an ordered set behind a position, up to a score.
--
-- KEYS  owner, set, traits
--       the set is tasks, dlq or done
-- ARGV  1 score and 2 member of the position, both empty for the start
--       3 last score, as in ZCOUNT  4 most entries
--
-- returns {us, seq, inbox, entries: member, score, member, score, ..., traits per entry or
--   nothing when no task has any}

-- include owner.lua
-- include in_window.lua
local flat = in_window()
if #flat == 0 or redis.call('HLEN', TRAITS) == 0 then return {us, seq, inbox, flat, {}} end
local ids = {}
for i = 1, #flat, 2 do ids[#ids + 1] = flat[i] end
return {us, seq, inbox, flat, redis.call('HMGET', TRAITS, unpack(ids))}
