#!lua flags=allow-oom
-- trim_dead: delete dead tasks up to and including a position.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes  11 history
--       12 marks  13 looks  14 attrs  15 index
-- ARGV  1 finished ms of the last  2 its id  3 most tasks to delete, at most 1,000
--
-- returns how many it deleted

-- include owner.lua
-- include places.lua
-- include attrs.lua
-- include above.lua
local found = redis.call('ZRANGE', KEYS[6], '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
local ids = {}
for i = 1, #found, 2 do
  if tonumber(found[i + 1]) == tonumber(ARGV[1]) and above(found[i], ARGV[2]) then break end
  ids[#ids + 1] = found[i]
end
if #ids == 0 then return 0 end
redis.call('HLEN', KEYS[3])
local gone = {}
for i, p in ipairs(places(ids)) do
  if p[1] == 3 then gone[#gone + 1] = ids[i] end -- never the data of a task that lives
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[5], unpack(gone))
  redis.call('HDEL', KEYS[9], unpack(gone))
  forget_attrs(gone, attrs)
  redis.call('HDEL', KEYS[11], unpack(gone))
end
redis.call('ZREM', KEYS[6], unpack(ids))
return #ids
