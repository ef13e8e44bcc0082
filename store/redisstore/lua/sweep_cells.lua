#!lua flags=allow-oom
-- sweep_cells: repair when cells wake and which lists they are in.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 and on: ids of cells
--
-- returns {how many it repaired, how many ids it has looked at: until the cells of those fill
--   an answer}, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
redis.call('ZCARD', WAKES)
redis.call('ZCARD', LISTS)
redis.call('HLEN', CELLS)
redis.call('HLEN', PARTS)
local repaired, looked, room = 0, 0, MAX_BODIES
for i = 3, #ARGV do
  local id = ARGV[i]
  local kind = string.byte(id .. '\0')
  local cell = redis.call('HGET', kind >= 65 and kind <= 90 and PARTS or CELLS, id)
  local wakes = redis.call('ZSCORE', WAKES, id)
  local wake, list = 0, nil
  if cell and #cell >= 25 and #cell >= 25 + string.byte(cell, 17) then
    wake = struct.unpack('>i8', cell, 9)
    if string.byte(cell, 17) > 0 then list = string.sub(cell, 17, 25 + string.byte(cell, 17)) end
  end
  if wake ~= 0 and wake ~= tonumber(wakes) then
    redis.call('ZADD', WAKES, wake, id)
    repaired = repaired + 1
  elseif wake == 0 and wakes then
    redis.call('ZREM', WAKES, id)
    repaired = repaired + 1
  end
  if list then repaired = repaired + redis.call('ZADD', LISTS, 0, list .. id) end
  looked, room = looked + 1, room - (cell and #cell or 0)
  if room <= 0 then break end
end
return {repaired, looked}
