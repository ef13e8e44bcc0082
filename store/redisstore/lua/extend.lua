#!lua flags=allow-oom
-- extend: move the deadline of holds.
--
-- KEYS  those of a shard
-- ARGV  per task, no id twice: id, token, visibility ms, which may be followed by
--       :0:until:0: then the hold does not outlast until, and must not be over
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is held for its visibility from now,
--   until its until at most
--   odd  {position, status}: stale, wrong state, not found; ok extended, and
--        its cancellation was asked for

-- include owner.lua
-- include call.lua
local ids = {}
for i = 1, #ARGV, 3 do ids[#ids + 1] = ARGV[i] end
local records = redis.call('HMGET', RUNNING, unpack(ids))
local hset, odd, told, lost = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local record = records[i]
  local visibility, bound, live = ARGV[3 * i], nil, true
  if string.find(visibility, ':', 1, true) then
    visibility, bound = string.match(visibility, '(%d+):0:(%d+):0')
    live = record and #record >= 30 and struct.unpack('>i8', record, 17) > now
  end
  if record and #record >= 30 and string.sub(record, 1, 16) == ARGV[3 * i - 1] and live then
    local deadline = soon + visibility
    if bound then deadline = math.min(deadline, bound + 0) end
    hset[#hset + 1] = id
    hset[#hset + 1] = ARGV[3 * i - 1] .. struct.pack('>i8', deadline) .. string.sub(record, 25)
    if string.byte(record, 30 + struct.unpack('>I2', record, 29)) == MARK_CANCELLED then told[#told + 1] = {i, OK} end -- see running.lua
  else
    odd[#odd + 1] = {i}
    lost[#lost + 1] = id
  end
end
if #odd > 0 then
  -- include places.lua
  for k, p in ipairs(places(lost)) do
    odd[k][2] = p[1] == PLACE_NONE and NOT_FOUND or p[1] == PLACE_RUNNING and STALE or WRONG_STATE
  end
end
if #hset > 0 then redis.call('HSET', RUNNING, unpack(hset)) end
for _, t in ipairs(told) do odd[#odd + 1] = t end
return {us, seq, inbox, odd}
