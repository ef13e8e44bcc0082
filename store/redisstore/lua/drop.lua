#!lua flags=allow-oom
-- drop: delete everything of a shard but its owner record, unless it is another topic's.
-- The topic's life is over there then. Redis frees the memory in the background.
--
-- KEYS  those of a shard
-- ARGV  1 life of the topic, or empty
--
-- returns 1, or 0 another topic's

local life = ARGV[1]
local has = redis.call('HGET', OWNER, 'life')
if life ~= '' then
  if has and has ~= life and string.sub(has, -1) ~= '-' then return 0 end
  redis.call('HSET', OWNER, 'life', life .. '-')
end
redis.call('UNLINK', unpack(KEYS, 2))
redis.call('HDEL', OWNER, 'sealed', 'watched')
return 1
