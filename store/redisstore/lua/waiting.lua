-- The nodes that wait for a permit of a key: a hash of node -> since us, seen us.
-- turns(key) returns {node, since} of those that asked within WAIT_LIFE, the
-- first in turn first, and forgets the others, and those of a clock that was set back since.
local function turns(key)
  local all, turn, gone = redis.call('HGETALL', key), {}, {}
  for i = 1, #all, 2 do
    local since, seen = struct.unpack('>i8i8', all[i + 1])
    if seen > us or us - seen >= WAIT_LIFE then gone[#gone + 1] = all[i] else turn[#turn + 1] = {all[i], since} end
  end
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  table.sort(turn, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[1] < b[1]
  end)
  return turn
end
