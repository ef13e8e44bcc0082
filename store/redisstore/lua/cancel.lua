#!lua flags=allow-oom
-- cancel: mark running tasks as to be ended.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, tokens, odd}; a task that is not odd is marked
--   tokens  of the holds, empty for odd tasks
--   odd     {position, status, place, detail, note}: wrong state, not found

-- include owner.lua
-- include call.lua
-- include log.lua
-- include places.lua
local hset, tokens, odd = {}, {}, {}
for i, p in ipairs(places(ARGV)) do
  local record = p[2]
  tokens[i] = ''
  if p[1] == PLACE_RUNNING and #record >= 30 then
    local length = struct.unpack('>I2', record, 29)
    local who, mark = string.sub(record, 31, 30 + length), string.byte(record, 30 + length)
    if mark == MARK_HELD or mark == MARK_CANCELLED then
      who = string.sub(who, 1, -2) .. string.char(MARK_CANCELLED)
    else -- as running.lua has it, of before it was
      who = who .. struct.pack('>Bi8B', 0, 0, MARK_CANCELLED)
    end
    if watched and mark ~= MARK_CANCELLED then tell_held(CHANGE_CANCEL_REQUESTED, ARGV[i], record) end
    tokens[i] = string.sub(record, 1, 16)
    hset[#hset + 1] = ARGV[i]
    hset[#hset + 1] = string.sub(record, 1, 28) .. struct.pack('>I2', #who) .. who .. string.sub(record, 31 + length)
  else
    odd[#odd + 1] = {i, p[1] == PLACE_NONE and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
if #hset > 0 then redis.call('HSET', RUNNING, unpack(hset)) end
if watched then told() end
return {us, seq, tokens, odd}
