#!lua flags=allow-oom
-- reschedule: move the due time of pending tasks.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
-- ARGV  1 count  then per task, no id twice: id, due ms
--       and last the moment (see call.lua)
--
-- returns {us, seq, pended, traits, odd}; a task that is not odd is due at the given moment
--   traits  per task, or nothing when no task has any
--   odd  {position, status, place, detail, note}: 9 wrong state, 10 not found

-- include owner.lua
-- include call.lua
-- include status.lua
-- include places.lua
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
-- include lane_member.lua
-- include traits.lua
local traits = traits_of(ids)
local zadd, odd, left, joined = {}, {}, {}, {}
for i, p in ipairs(places(ids)) do
  if p[1] == 1 then
    zadd[#zadd + 1], zadd[#zadd + 2] = ARGV[2 * i + 1], ids[i]
    local member = traits and lane_member(ids[i], p[2], traits[i])
    if member then
      left[#left + 1] = member
      joined[#joined + 1], joined[#joined + 2] = 0, lane_member(ids[i], ARGV[2 * i + 1], traits[i])
    end
  else
    odd[#odd + 1] = {i, p[1] == 0 and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
local count, pended = ARGV[1], #zadd > 0
if pended then redis.call('ZADD', KEYS[2], unpack(zadd)) end
if #left > 0 then
  redis.call('ZREM', KEYS[10], unpack(left))
  redis.call('ZADD', KEYS[10], unpack(joined))
end
-- include count.lua
return {us, seq, pended and 1 or 0, traits or {}, odd}
