-- finish_order takes held tasks of ordering keys out of their lines. The caller says in
-- has_traits whether tasks of the shard have any.
local finish_order
if has_traits then
  -- include order_key.lua
  finish_order = function(ids, records)
    local ordered, out = {}, {}
    for k, record in ipairs(records) do -- of one with an ordering key a + is in front of the due time
      if #record >= 30 and string.byte(record, 31 + struct.unpack('>I2', record, 29)) == 43 then ordered[#ordered + 1] = ids[k] end
    end
    if #ordered == 0 then return end
    for k, t in ipairs(redis.call('HMGET', TRAITS, unpack(ordered))) do
      local key = order_key(t)
      if key then out[#out + 1] = order_member(key, ordered[k]) end
    end
    if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
  end
end
