#!lua flags=allow-oom
-- sweep_lanes: remove members of lanes whose task is not pending there.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
-- ARGV  1 epoch  2 nonce  3 and on: members
--
-- returns how many it removed, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include lane_member.lua
redis.call('ZCARD', KEYS[2])
redis.call('HLEN', KEYS[9])
local wrong = {}
for i = 3, #ARGV do
  local member = ARGV[i]
  local id = #member > 2 and string.sub(member, 11 + string.byte(member, 2)) or ''
  local due = redis.call('ZSCORE', KEYS[2], id)
  if lane_member(id, due, redis.call('HGET', KEYS[9], id)) ~= member then wrong[#wrong + 1] = member end
end
if #wrong > 0 then redis.call('ZREM', KEYS[10], unpack(wrong)) end
return #wrong
