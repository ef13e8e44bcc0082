#!lua flags=allow-oom
-- remove_dead: delete dead tasks.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is gone
--   odd  {position, status}: not dead

-- include owner.lua
-- include call.lua
-- include log.lua
-- include places.lua
-- include attrs.lua
-- include parcels.lua
redis.call('HLEN', DATA)
local gone, odd = {}, {}
for i, p in ipairs(places(ARGV)) do
  if p[1] == PLACE_DEAD then
    gone[#gone + 1] = ARGV[i]
    if watched then tell(CHANGE_DELETED, ARGV[i], attempts_of(p[3])) end
  else
    odd[#odd + 1] = {i, NOT_FOUND}
  end
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', DATA, unpack(gone))
  redis.call('HDEL', NOTES, unpack(gone))
  redis.call('HDEL', HISTORY, unpack(gone))
  redis.call('HDEL', TRAITS, unpack(gone))
  if tells then forget_tells(gone) end
  forget_attrs(gone, attrs)
  redis.call('ZREM', DLQ, unpack(gone))
end
if watched then told(gone, attrs) end
return {us, seq, inbox, odd}
