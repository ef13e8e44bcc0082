#!lua flags=allow-oom
-- sweep_index: remove members of the index that no task has.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 and on: members
--
-- returns how many it removed, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include attrs.lua
redis.call('HLEN', ATTRS)
local wrong = {}
for i = 3, #ARGV do
  local member, has = ARGV[i], {}
  local zero = string.find(member, '\0', 2 + string.byte(member .. '\0'), true)
  local id = zero and string.sub(member, zero + 2) or ''
  members(has, id, redis.call('HGET', ATTRS, id) or '')
  local found = false
  for _, m in ipairs(has) do found = found or m == member end
  if not found then wrong[#wrong + 1] = member end
end
if #wrong > 0 then redis.call('ZREM', INDEX, unpack(wrong)) end
return #wrong
