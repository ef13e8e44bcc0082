#!lua flags=allow-oom
-- seal: make a shard take no new task, unless it is another topic's.
--
-- KEYS  owner
-- ARGV  1 life of the topic, or empty
--
-- returns 1, or 0 another topic's

local life = ARGV[1]
local has = redis.call('HGET', OWNER, 'life')
if life ~= '' and has ~= life and has ~= life .. '-' then
  if has and string.sub(has, -1) ~= '-' then return 0 end
  redis.call('HSET', OWNER, 'life', life)
end
redis.call('HSET', OWNER, 'sealed', 1)
return 1
