-- Refuses tasks of another topic than the shard's. The last argument (behind call.lua) is
-- the life of the topic that they are for, empty: the caller does not say. The record has
-- the life of the topic that the shard belongs to, with a - behind it when that is over;
-- a shard without one becomes the topic's.
local life = table.remove(ARGV)
if life ~= '' and owner[7] ~= life then
  if owner[7] then return -2 end
  redis.call('HSET', OWNER, 'life', life)
end
