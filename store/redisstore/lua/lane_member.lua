-- lane_member is the member of the set of lanes for a pending task: its lane, its due
-- time and its id; nil for a task of the zero lane.
local function lane_member(id, due, traits)
  if not traits or not due or #traits < 2 then return nil end
  local priority, size = string.byte(traits, 1, 2)
  if priority == 0 and size == 0 then return nil end
  return string.sub(traits, 1, 2 + size) .. struct.pack('>i8', math.max(0, due + 0)) .. id
end
