#!lua flags=allow-oom
-- trim: delete done tasks whose retention has passed.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes  11 history
--       12 marks  13 looks  14 attrs  15 index
-- ARGV  1 most tasks to delete, at most 1,000
--
-- returns how many it deleted

-- include owner.lua
-- include places.lua
-- include attrs.lua
local ids = redis.call('ZRANGE', KEYS[8], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
if #ids == 0 then return 0 end
redis.call('HLEN', KEYS[3])
local gone = {}
for i, p in ipairs(places(ids)) do
  if p[1] == 4 then gone[#gone + 1] = ids[i] end -- never the data of a task that lives
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[5], unpack(gone))
  redis.call('HDEL', KEYS[11], unpack(gone))
  redis.call('HDEL', KEYS[9], unpack(gone))
  forget_attrs(gone, attrs)
  redis.call('ZREM', KEYS[7], unpack(gone))
end
redis.call('ZREM', KEYS[8], unpack(ids))
return #gone
