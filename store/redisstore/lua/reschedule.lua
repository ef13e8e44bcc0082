#!lua flags=allow-oom
-- reschedule: move the due time of pending tasks.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept
-- ARGV  per task, no id twice: id, due ms
--
-- returns {us, seq, odd}; a task that is not odd is due at the given moment
--   odd  {position, status, place, detail, note}: 9 wrong state, 10 not found

-- include owner.lua
-- include status.lua
-- include places.lua
local ids = {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local zadd, odd = {}, {}
for i, p in ipairs(places(ids)) do
  if p[1] == 1 then
    zadd[#zadd + 1], zadd[#zadd + 2] = ARGV[2 * i], ids[i]
  else
    odd[#odd + 1] = {i, p[1] == 0 and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
if #zadd > 0 then
  seq = seq + 1
  redis.call('ZADD', KEYS[2], unpack(zadd))
  redis.call('HSET', KEYS[1], 'seq', seq)
end
return {us, seq, odd}
