#!lua flags=allow-oom
-- extend: move the deadline of holds.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes  11 history
-- ARGV  per task, no id twice: id, token, visibility ms
--       and last the moment (see call.lua)
--
-- returns {us, seq, odd}; a task that is not odd is held for its visibility from now
--   odd  {position, status}: 8 stale, 9 wrong state, 10 not found; 1 extended, and
--        its cancellation was asked for

-- include owner.lua
-- include call.lua
local ids = {}
for i = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local records = redis.call('HMGET', KEYS[4], unpack(ids))
local hset, odd, told, lost = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local record = records[i]
  if record and #record >= 30 and string.sub(record, 1, 16) == ARGV[3 * i - 1] then
    hset[#hset + 1] = id
    hset[#hset + 1] = ARGV[3 * i - 1] .. struct.pack('>i8', soon + ARGV[3 * i]) .. string.sub(record, 25)
    if string.byte(record, 30 + struct.unpack('>I2', record, 29)) == 255 then told[#told + 1] = {i, 1} end -- see running.lua
  else
    odd[#odd + 1] = {i}
    lost[#lost + 1] = id
  end
end
if #odd > 0 then
  -- include status.lua
  -- include places.lua
  for k, p in ipairs(places(lost)) do
    odd[k][2] = p[1] == 0 and NOT_FOUND or p[1] == 2 and STALE or WRONG_STATE
  end
end
if #hset > 0 then redis.call('HSET', KEYS[4], unpack(hset)) end
for _, t in ipairs(told) do odd[#odd + 1] = t end
return {us, seq, odd}
