#!lua flags=allow-oom
-- cancel: mark running tasks as to be ended.
--
-- KEYS  those of a shard
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, tokens, odd}; a task that is not odd is marked
--   tokens  of the holds, empty for odd tasks
--   odd     {position, status, place, detail, note}: wrong state, not found

-- include owner.lua
-- include call.lua
-- include log.lua
-- include places.lua
-- include cancelled.lua
local hset, tokens, odd = {}, {}, {}
for i, p in ipairs(places(ARGV)) do
  local record, again
  if p[1] == PLACE_RUNNING then record, again = cancelled(p[2]) end
  tokens[i] = ''
  if record then
    if watched and not again then tell_held(CHANGE_CANCEL_REQUESTED, ARGV[i], p[2]) end
    tokens[i] = string.sub(record, 1, 16)
    hset[#hset + 1], hset[#hset + 2] = ARGV[i], record
  else
    odd[#odd + 1] = {i, p[1] == PLACE_NONE and NOT_FOUND or WRONG_STATE, unpack(p)}
  end
end
if #hset > 0 then redis.call('HSET', RUNNING, unpack(hset)) end
if watched then told() end
return {us, seq, inbox, tokens, odd}
