-- ORDER is the set of the unfinished tasks of ordering keys.
local byte, sub, never = string.byte, string.sub, string.rep('\0', 8)

-- order_key is the ordering key in encoded traits, nil for none: the first field, of
-- number 1, behind the lane (see record.AppendTraits).
local function order_key(traits)
  if not traits or #traits < 5 then return nil end
  local at = 3 + byte(traits, 2)
  if byte(traits, at) ~= 10 then return nil end
  local size = byte(traits, at + 1)
  if size > 127 then
    at = at + 1
    size = size - 128 + 128 * byte(traits, at + 1)
  end
  return sub(traits, at + 2, at + 1 + size)
end

-- order_member is the member of the set of ordering keys for an unfinished task: the
-- length of its key in 1 byte, the key, the due time, which is 0 once it was held, and
-- the id.
local function order_member(key, id, due)
  local at = due and struct.pack('>i8', math.max(1, due + 0)) or never
  return string.char(#key) .. key .. at .. id
end
