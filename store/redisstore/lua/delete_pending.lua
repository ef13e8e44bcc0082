-- delete_pending deletes pending tasks because somebody said so, as they were found, and
-- notes what they leave; it returns their attributes. The caller included attrs.lua, log.lua,
-- parcels.lua, places.lua, traits.lua, lane_member.lua and order_key.lua, and has looked at every key.
local function delete_pending(ids, found)
  if #ids == 0 then return nil end
  local traits, attrs, cells, left, out = traits_of(ids), attrs_of(ids), tells and cells_of(ids), {}, {}
  for i, id in ipairs(ids) do
    local due, note = found[i][2], found[i][3]
    if watched then tell(CHANGE_DELETED, id, attempts_of(note)) end
    if cells and cells[i] then
      local attempt, why = past(note)
      leave(cells[i], CHANGE_DELETED, id, 0, attempt, due, '', why, '')
    end
    left[#left + 1] = traits and lane_member(id, due, traits[i])
    local key = traits and order_key(traits[i])
    if key then out[#out + 1], out[#out + 2] = order_member(key, id, due), order_member(key, id) end
  end
  redis.call('HDEL', DATA, unpack(ids))
  redis.call('HDEL', NOTES, unpack(ids))
  redis.call('HDEL', HISTORY, unpack(ids))
  redis.call('ZREM', TASKS, unpack(ids))
  if traits then redis.call('HDEL', TRAITS, unpack(ids)) end
  if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
  if #left > 0 then redis.call('ZREM', LANES, unpack(left)) end
  forget_attrs(ids, attrs)
  if tells then forget_tells(ids) end
  return attrs
end
