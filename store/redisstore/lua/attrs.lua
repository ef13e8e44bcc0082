-- Indexed attributes. The hash of attributes has those of a task, as record.AppendIndexed
-- packs them, and the index has a member for each. In a shard in which none was ever
-- indexed the owner record has no field indexed, and nothing looks at either.

-- in_parts runs a command with many arguments, an even number of which belong together.
local function in_parts(name, key, all)
  for i = 1, #all, 4000 do
    redis.call(name, key, unpack(all, i, math.min(i + 3999, #all)))
  end
end

-- attrs_of looks up the attributes of tasks: per task packed or false, or nil when the
-- shard has none. It comes before the first write.
local function attrs_of(ids)
  if not owner[5] or #ids == 0 then return nil end
  redis.call('ZCARD', INDEX)
  return redis.call('HMGET', ATTRS, unpack(ids))
end

-- members appends the members of a task in the index, each behind what goes before it:
-- see store.NewIndexEntry.
local function members(all, id, packed, before)
  local at = 1
  while at + 2 <= #packed do
    local n = string.byte(packed, at)
    local size = struct.unpack('>I2', packed, at + n + 1)
    local value = string.sub(packed, at + n + 3, at + n + 2 + size)
    local stop = (string.find(value, '\0', 1, true) or size + 1) - 1
    if stop > 128 then stop = 128 end
    if before then all[#all + 1] = before end
    all[#all + 1] = string.sub(packed, at, at + n) .. string.sub(value, 1, stop) .. '\0' .. (stop < size and '\1' or '\0') .. id
    at = at + n + 3 + size
  end
end

-- forget_attrs takes tasks out of the index, as attrs_of found them.
local function forget_attrs(ids, packed)
  if not packed then return end
  local gone, old = {}, {}
  for i = 1, #ids do
    if packed[i] then
      gone[#gone + 1] = ids[i]
      members(old, ids[i], packed[i])
    end
  end
  if #gone > 0 then redis.call('HDEL', ATTRS, unpack(gone)) end
  in_parts('ZREM', INDEX, old)
end
