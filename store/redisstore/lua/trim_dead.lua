#!lua flags=allow-oom
-- trim_dead: delete dead tasks up to and including a position.
--
-- KEYS  those of a shard
-- ARGV  1 finished ms of the last  2 its id  3 most tasks to delete, at most 1,000
--
-- returns how many it deleted, negative when it stopped before so many because their journals are long

-- include owner.lua
-- include places.lua
-- include attrs.lua
-- include parcels.lua
-- include above.lua
local found = redis.call('ZRANGE', DLQ, '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
local ids = {}
for i = 1, #found, 2 do
  if tonumber(found[i + 1]) == tonumber(ARGV[1]) and above(found[i], ARGV[2]) then break end
  ids[#ids + 1] = found[i]
end
if #ids == 0 then return 0 end
redis.call('HLEN', DATA)
local gone, fit = {}, fitting(ids)
local short = fit < #ids
if short then ids = {unpack(ids, 1, fit)} end
for i, p in ipairs(places(ids)) do
  if p[1] == PLACE_DEAD then gone[#gone + 1] = ids[i] end -- never the data of a task that lives
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', DATA, unpack(gone))
  redis.call('HDEL', NOTES, unpack(gone))
  redis.call('HDEL', TRAITS, unpack(gone))
  if tells then forget_tells(gone) end
  forget_attrs(gone, attrs)
  redis.call('HDEL', HISTORY, unpack(gone))
end
redis.call('ZREM', DLQ, unpack(ids))
return short and -#ids or #ids
