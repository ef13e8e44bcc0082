-- Sets are store.IndexSet.

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
