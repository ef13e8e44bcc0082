#!lua flags=allow-oom
-- drop: delete everything of a shard but its owner record, unless it is another topic's.
-- The topic's life is over there then, and the record goes after DROPPED_LIFE, if the
-- shard is not opened again. Redis frees the memory in the background.
--
-- KEYS  all of a shard
-- ARGV  1 life of the topic, or empty
--
-- returns 1, or 0 another topic's

local life = ARGV[1]
local had = redis.call('HMGET', OWNER, 'life', 'in')
local has = had[1]
if life ~= '' then
  if has and has ~= life and string.sub(has, -1) ~= '-' then return 0 end
  redis.call('HSET', OWNER, 'life', life .. '-')
  redis.call('PEXPIRE', OWNER, DROPPED_LIFE) -- nobody is left then who has not heard of it
end
for _, name in ipairs(redis.call('ZRANGE', QUEUES, 0, -1)) do
  local life = string.gsub(string.sub(name, 2, 9), '.', function(c) return string.format('%02x', string.byte(c)) end)
  redis.call('UNLINK', QUEUES .. ':' .. string.byte(name) .. ':' .. life .. ':' .. string.sub(name, 10)) -- see queueKey
end
redis.call('UNLINK', unpack(KEYS, 2))
redis.call('HDEL', OWNER, 'sealed', 'watched', 'queued')
if had[2] then redis.call('HSET', OWNER, 'taken', had[2]) end -- numbers of parcels go on
return 1
