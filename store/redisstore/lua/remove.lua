#!lua flags=allow-oom
-- remove: delete pending tasks.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is gone
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
-- include parcels.lua
-- include delete_pending.lua
local gone, spots, odd = {}, {}, {}
for i, p in ipairs(places(ARGV)) do
  if p[1] == PLACE_PENDING then
    gone[#gone + 1], spots[#spots + 1] = ARGV[i], p
  else
    odd[#odd + 1] = {i, p[1] == PLACE_NONE and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
local attrs = delete_pending(gone, spots)
if tells then post() end
if watched then told(gone, attrs) end
return {us, seq, inbox, odd}
