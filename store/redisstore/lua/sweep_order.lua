#!lua flags=allow-oom
-- sweep_order: remove members of ordering keys whose task does not stand there.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 and on: members
--
-- returns how many it removed, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include order_key.lua
redis.call('ZCARD', TASKS)
redis.call('HLEN', RUNNING)
redis.call('HLEN', TRAITS)
local wrong = {}
for i = 3, #ARGV do
  local member = ARGV[i]
  local id = #member > 0 and string.sub(member, 10 + string.byte(member)) or ''
  local key = order_key(redis.call('HGET', TRAITS, id))
  local due = redis.call('ZSCORE', TASKS, id)
  local held = redis.call('HEXISTS', RUNNING, id) == 1
  local first = key and order_member(key, id)
  if not key or not (held or due) then
    wrong[#wrong + 1] = member
  elseif member ~= first and (held or member ~= order_member(key, id, due) or redis.call('ZSCORE', ORDER, first)) then
    wrong[#wrong + 1] = member
  end
end
if #wrong > 0 then redis.call('ZREM', ORDER, unpack(wrong)) end
return #wrong
