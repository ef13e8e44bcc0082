#!lua flags=allow-oom
-- sweep_lists: remove members of lists that no cell is in.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 and on: members
--
-- returns {how many it removed, how many it has looked at: until the cells of those fill an
--   answer}, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
redis.call('HLEN', CELLS)
redis.call('HLEN', PARTS)
local wrong, looked, room = {}, 0, MAX_BODIES
for i = 3, #ARGV do
  local member = ARGV[i]
  local size = 9 + string.byte(member .. '\0')
  local id = string.sub(member, size + 1)
  local kind = string.byte(id .. '\0')
  local cell = redis.call('HGET', kind >= 65 and kind <= 90 and PARTS or CELLS, id)
  if id == '' or not cell or string.sub(cell, 17, 16 + size) ~= string.sub(member, 1, size) then wrong[#wrong + 1] = member end
  looked, room = looked + 1, room - (cell and #cell or 0)
  if room <= 0 then break end
end
if #wrong > 0 then redis.call('ZREM', LISTS, unpack(wrong)) end
return {#wrong, looked}
