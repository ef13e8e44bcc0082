#!lua flags=no-writes
-- lookup: members of the index.
--
-- KEYS  owner, index
-- ARGV  1 name, behind its length in a byte  2 the first member  3 what is behind the
--       last  4 most members
--
-- returns the members, or -3 the shard is not complete for the name

local owner = {[5] = redis.call('HGET', OWNER, 'indexed')}
-- include index_sets.lua
local _, has = names(owner[5] or '')
if not has[ARGV[1]] then return -3 end
return redis.call('ZRANGE', INDEX, '[' .. ARGV[2], '(' .. ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4])
