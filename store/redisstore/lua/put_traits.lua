-- put_traits stores those of new tasks. ARGV has k of them from first on: the position
-- of a task and its traits. new tells by position where a task is now: pending, running;
-- nil all are pending. The caller included lane_member.lua and order_key.lua.
local function put_traits(first, k, ids, dues, new)
  local hset, zadd, order = {}, {}, {}
  for j = first, first + 2 * k - 1, 2 do
    local i, traits = tonumber(ARGV[j]), ARGV[j + 1]
    local state = not new and PLACE_PENDING or new[i]
    if state then hset[#hset + 1], hset[#hset + 2] = ids[i], traits end
    local member = state == PLACE_PENDING and lane_member(ids[i], dues[i], traits)
    if member then zadd[#zadd + 1], zadd[#zadd + 2] = '0', member end
    local key = state == PLACE_PENDING and order_key(traits)
    if key then order[#order + 1], order[#order + 2] = '0', order_member(key, ids[i], dues[i]) end
  end
  if #hset > 0 then redis.call('HSET', TRAITS, unpack(hset)) end
  if #zadd > 0 then redis.call('ZADD', LANES, unpack(zadd)) end
  if #order > 0 then redis.call('ZADD', ORDER, unpack(order)) end
end
