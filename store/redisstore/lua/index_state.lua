-- The field indexed of the owner record is what the index is complete for, and, while
-- a walk is under way, a zero byte, the 16 bytes of its token, and the set that it is
-- for. Sets are store.IndexSet.
-- include index_sets.lua

-- spoke returns the field after tasks came whose node speaks of a set, nil when it
-- stays: see store.IndexState. It comes before the first write.
local function spoke(set)
  local field = owner[5]
  if (field or '') == set then return nil end
  local list, _, walk = names(field or '')
  local ready = table.concat(list)
  local n = redis.call('HLEN', DATA)
  if n == 0 or n == 1 and string.byte(redis.call('HKEYS', DATA)[1]) == 255 then -- nothing but the guard
    ready = set
  else
    ready = both(ready, set)
  end
  if walk ~= '' and both(string.sub(walk, 18), set) ~= string.sub(walk, 18) then walk = '' end
  if field == ready .. walk then return nil end
  return ready .. walk
end

local function write_spoken(field)
  if not field then return end
  redis.call('HSET', OWNER, 'indexed', field)
  owner[5] = field
end
