-- bodies reads fields of a hash, of the first ones until they have MAX_BODIES bytes
-- together, and at least one. It reads in pages that double, and of large
-- values no more than there is room for. room is what is left for it, nil for all; it
-- returns what is left then, too.
local function bodies(key, ids, first, last, room)
  local records, left, largest, page = {}, room or MAX_BODIES, 1, 8
  while first <= last and left > 0 do
    local n = math.min(page, last - first + 1, math.ceil(left / largest))
    local some = redis.call('HMGET', key, unpack(ids, first, first + n - 1))
    for k = 1, n do
      local size = some[k] and #some[k] or 0
      records[#records + 1] = some[k]
      left = left - size
      if left <= 0 then break end
      if size > largest then largest = size end
    end
    first, page = first + n, 2 * page
  end
  return records, left
end
