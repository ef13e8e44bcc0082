#!lua flags=allow-oom
-- remove: delete pending tasks.
--
-- KEYS  those of a shard
-- ARGV  1 how many  2 ids, none twice  3 as many versions that they must have (0: any)
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is gone
--   odd  {position, status, place, detail, note}: wrong state, not found, stale, left out (see parcels.lua)

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
-- include edits.lua

-- stale reports whether a pending task has another version than one.
local function stale(id, version)
  if version == '0' then return false end
  local record = redis.call('HGET', DATA, id)
  return not record or (edits(record) or -1) + 1 ~= version + 0
end

local n = tonumber(ARGV[1])
local gone, spots, odd, ids = {}, {}, {}, {}
for i = 1, n do ids[i] = ARGV[1 + i] end
local fit = fitting(ids)
for i, p in ipairs(places(ids)) do
  if i > fit then
    odd[#odd + 1] = {i, LEFT_OUT, unpack(p)}
  elseif p[1] ~= PLACE_PENDING then
    odd[#odd + 1] = {i, p[1] == PLACE_NONE and NOT_FOUND or WRONG_STATE, unpack(p)}
  elseif stale(ids[i], ARGV[1 + n + i]) then
    odd[#odd + 1] = {i, STALE, unpack(p)}
  else
    gone[#gone + 1], spots[#spots + 1] = ids[i], p
  end
end
local attrs = delete_pending(gone, spots)
if tells then post() end
if watched then told(gone, attrs) end
return {us, seq, inbox, odd}
