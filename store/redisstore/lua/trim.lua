#!lua flags=allow-oom
-- trim: delete done tasks whose retention has passed.
--
-- KEYS  those of a shard
-- ARGV  1 most tasks to delete, at most 1,000
--
-- returns how many it deleted

-- include owner.lua
-- include places.lua
-- include attrs.lua
-- include parcels.lua
local ids = redis.call('ZRANGE', KEPT, '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
if #ids == 0 then return 0 end
redis.call('HLEN', DATA)
local gone = {}
for i, p in ipairs(places(ids)) do
  if p[1] == PLACE_DONE then gone[#gone + 1] = ids[i] end -- never the data of a task that lives
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', DATA, unpack(gone))
  redis.call('HDEL', NOTES, unpack(gone))
  redis.call('HDEL', HISTORY, unpack(gone))
  redis.call('HDEL', TRAITS, unpack(gone))
  if tells then forget_tells(gone) end
  forget_attrs(gone, attrs)
  redis.call('ZREM', DONE, unpack(gone))
end
redis.call('ZREM', KEPT, unpack(ids))
return #gone
