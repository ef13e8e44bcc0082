#!lua flags=allow-oom
-- remove: delete pending tasks.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, odd}; a task that is not odd is gone
--   odd  {position, status, place, detail, note}: wrong state, not found

-- include owner.lua
-- include call.lua
-- include log.lua
-- include places.lua
redis.call('HLEN', DATA)
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
-- include attrs.lua
local traits = traits_of(ARGV)
local gone, left, out, odd = {}, {}, {}, {}
for i, p in ipairs(places(ARGV)) do
  if p[1] == PLACE_PENDING then
    gone[#gone + 1] = ARGV[i]
    if watched then tell(CHANGE_DELETED, ARGV[i], attempts_of(p[3])) end
    left[#left + 1] = traits and lane_member(ARGV[i], p[2], traits[i])
    local key = traits and order_key(traits[i])
    if key then out[#out + 1], out[#out + 2] = order_member(key, ARGV[i], p[2]), order_member(key, ARGV[i]) end
  else
    odd[#odd + 1] = {i, p[1] == PLACE_NONE and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', DATA, unpack(gone))
  redis.call('HDEL', NOTES, unpack(gone))
  redis.call('HDEL', HISTORY, unpack(gone))
  redis.call('ZREM', TASKS, unpack(gone))
  if traits then redis.call('HDEL', TRAITS, unpack(gone)) end
  if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
  if #left > 0 then redis.call('ZREM', LANES, unpack(left)) end
  forget_attrs(gone, attrs)
end
if watched then told(gone, attrs) end
return {us, seq, odd}
