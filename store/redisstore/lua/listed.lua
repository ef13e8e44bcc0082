#!lua flags=no-writes
-- listed: cells of a list behind a position.
--
-- KEYS  lists, cells, parts
-- ARGV  1 the name of the list behind its length in a byte  2 "[" for the start, or "(" and a
--       position: listed in 8 bytes (see cell.go) and id  3 most cells
--
-- returns {positions, cells}: as many cells as fill the answer, see bodies.lua; false for one that is not there

-- include bodies.lua
local list = ARGV[1]
local from = string.sub(ARGV[2], 1, 1) .. list .. string.sub(ARGV[2], 2)
local members = redis.call('ZRANGE', LISTS, from, '(' .. list .. string.rep('\255', 9), 'BYLEX', 'LIMIT', 0, ARGV[3])
local positions, ids, found, room = {}, {}, {}, MAX_BODIES
for i, member in ipairs(members) do
  positions[i] = string.sub(member, #list + 1)
  ids[i] = string.sub(positions[i], 9)
end
local function key_of(id)
  local kind = string.byte(id)
  return kind >= 65 and kind <= 90 and PARTS or CELLS
end
local first = 1
while first <= #ids and room > 0 do
  local last, some = first, nil
  while last < #ids and key_of(ids[last + 1]) == key_of(ids[first]) do last = last + 1 end
  some, room = bodies(key_of(ids[first]), ids, first, last, room)
  for k = 1, last - first + 1 do
    if some[k] ~= nil then found[#found + 1] = some[k] end
  end
  first = last + 1
end
return {positions, found}
