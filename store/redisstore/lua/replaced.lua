-- replaced returns those of new tasks in whose place a done or dead one is, as they are stored and were found, as many as
-- this script deletes, and the position up to which it does. The caller included places.lua and parcels.lua.
local function replaced(ids, stored, found)
  local over, positions = {}, {}
  for i, id in ipairs(ids) do
    if stored[i] and found[i][1] >= PLACE_DEAD then over[#over + 1], positions[#positions + 1] = id, i end
  end
  local fit = fitting(over)
  return {unpack(over, 1, fit)}, positions[fit] or 0
end
