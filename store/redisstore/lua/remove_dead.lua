#!lua flags=allow-oom
-- remove_dead: delete dead tasks.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is gone
--   odd  {position, status}: not found, left out (see parcels.lua)

-- include owner.lua
-- include call.lua
-- include log.lua
-- include places.lua
-- include attrs.lua
-- include parcels.lua
-- include delete_dead.lua
redis.call('HLEN', DATA)
local gone, where, odd = {}, {}, {}
local fit = fitting(ARGV)
for i, p in ipairs(places(ARGV)) do
  if i > fit then
    odd[#odd + 1] = {i, LEFT_OUT}
  elseif p[1] == PLACE_DEAD then
    gone[#gone + 1], where[#where + 1] = ARGV[i], p
  else
    odd[#odd + 1] = {i, NOT_FOUND}
  end
end
local attrs = delete_dead(gone, where)
if watched then told(gone, attrs) end
return {us, seq, inbox, odd}
