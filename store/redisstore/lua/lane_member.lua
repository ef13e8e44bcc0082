-- lane_member is the member of the set of lanes for a pending task: its lane, its due
-- time and its id; nil for a task of the zero lane.
local function lane_member(id, due, traits)
  if not traits or not due or #traits < 2 or string.sub(traits, 1, 2) == '\0\0' then return nil end
  return string.sub(traits, 1, 2 + string.byte(traits, 2)) .. struct.pack('>i8', math.max(0, due + 0)) .. id
end
