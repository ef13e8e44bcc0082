-- The field indexed of the owner record is what the index is complete for, and, while
-- a walk is under way, a zero byte, the 16 bytes of its token, and the set that it is
-- for. Sets are store.IndexSet.

-- names returns those of a set, with the length in front, and what is behind the set.
local function names(set)
  local list, has, at = {}, {}, 1
  while at <= #set and string.byte(set, at) > 0 do
    local name = string.sub(set, at, at + string.byte(set, at))
    list[#list + 1], has[name] = name, true
    at = at + #name
  end
  return list, has, string.sub(set, at)
end

-- both returns the names of one set that are in another one, too.
local function both(one, other)
  local list = names(one)
  local _, has = names(other)
  local out = {}
  for _, name in ipairs(list) do
    if has[name] then out[#out + 1] = name end
  end
  return table.concat(out)
end

-- spoke returns the field after tasks came whose node speaks of a set, nil when it
-- stays: see store.IndexState. It comes before the first write.
local function spoke(set)
  local field = owner[5]
  if (field or '') == set then return nil end
  local list, _, walk = names(field or '')
  local ready = table.concat(list)
  local n = redis.call('HLEN', KEYS[3])
  if n == 0 or n == 1 and string.byte(redis.call('HKEYS', KEYS[3])[1]) == 255 then -- nothing but the guard
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
  redis.call('HSET', KEYS[1], 'indexed', field)
  owner[5] = field
end
