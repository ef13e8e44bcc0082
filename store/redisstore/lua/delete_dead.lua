-- delete_dead deletes dead tasks, as they were found, and tells nobody but the log; it returns their attributes.
-- The caller included attrs.lua, log.lua, parcels.lua and places.lua, and has looked at every key.
local function delete_dead(ids, found)
  if #ids == 0 then return nil end
  local attrs = attrs_of(ids)
  if watched then
    for i, id in ipairs(ids) do tell(CHANGE_DELETED, id, attempts_of(found[i][3])) end
  end
  redis.call('HDEL', DATA, unpack(ids))
  redis.call('HDEL', NOTES, unpack(ids))
  redis.call('HDEL', HISTORY, unpack(ids))
  redis.call('HDEL', TRAITS, unpack(ids))
  if tells then forget_tells(ids) end
  forget_attrs(ids, attrs)
  redis.call('ZREM', DLQ, unpack(ids))
  return attrs
end
