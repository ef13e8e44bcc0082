#!lua flags=allow-oom
-- open: make a shard that was dropped, or is another topic's, take tasks of a topic, unless
-- its record has changed since it was read. The seal of a shard of which nobody knew
-- whose it was stays.
--
-- KEYS  owner
-- ARGV  1 life of the topic  2 what was read, empty when absent
--
-- returns 1 open, or 0 nothing changed

local life, was = ARGV[1], ARGV[2]
if life == '' or was == life or (redis.call('HGET', OWNER, 'life') or '') ~= was then return 0 end
redis.call('HSET', OWNER, 'life', life)
redis.call('PERSIST', OWNER) -- one that was dropped expires
if was ~= '' then redis.call('HDEL', OWNER, 'sealed') end
return 1
