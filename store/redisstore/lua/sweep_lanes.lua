#!lua flags=allow-oom
-- sweep_lanes: remove members of lanes whose task is not pending there.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 and on: members
--
-- returns how many it removed, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include lane_member.lua
redis.call('ZCARD', TASKS)
redis.call('HLEN', TRAITS)
local wrong = {}
for i = 3, #ARGV do
  local member = ARGV[i]
  local id = #member > 2 and string.sub(member, 11 + string.byte(member, 2)) or ''
  local due = redis.call('ZSCORE', TASKS, id)
  if lane_member(id, due, redis.call('HGET', TRAITS, id)) ~= member then wrong[#wrong + 1] = member end
end
if #wrong > 0 then redis.call('ZREM', LANES, unpack(wrong)) end
return #wrong
