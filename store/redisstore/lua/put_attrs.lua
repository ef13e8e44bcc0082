-- include index_state.lua
-- word returns the set that a call of new tasks speaks of, and where in its argument the
-- attributes of the tasks begin. The argument is empty for no set, or the length of the
-- set in 2 bytes, the set, and for each task that has some its position in 2 bytes, the
-- length of its packed attributes in 4, and these.
local function word(arg)
  if arg == '' then return '', 1 end
  local size = struct.unpack('>I2', arg)
  return string.sub(arg, 3, 2 + size), 3 + size
end

-- put_attrs stores the attributes of new tasks. new tells by position which are; nil all.
local function put_attrs(arg, ids, new)
  if arg == '' then return end
  local hset, zadd = {}, {}
  local _, at = word(arg)
  while at <= #arg do
    local i, size = struct.unpack('>I2I4', arg, at)
    local packed = string.sub(arg, at + 6, at + 5 + size)
    if not new or new[i] then
      hset[#hset + 1], hset[#hset + 2] = ids[i], packed
      members(zadd, ids[i], packed, 0)
    end
    at = at + 6 + size
  end
  in_parts('HSET', ATTRS, hset)
  in_parts('ZADD', INDEX, zadd)
end
