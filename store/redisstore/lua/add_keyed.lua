#!lua
-- add_keyed: insert tasks whose idempotency key is free, one after the other, and tasks
-- without one, also into a sealed shard that has unfinished tasks of their ordering key.
--
-- KEYS  those of a shard
-- ARGV  1 count  2 set of attributes that are indexed
--       then per task, no id twice: id, due ms, record, traits or empty, packed attributes,
--       the cell that it tells or empty, key (empty: none), window ms (0: while the task lives), what to do when the key is taken:
--       0 answer with its task, 1 refuse, 2 replace its task while that is pending,
--       3 refuse unless the fingerprint is the same
--       and last the life (see admit.lua) and the moment (see call.lua)
--
-- returns {us, seq, inbox, pended, answers}, or -2 the shard is another topic's
--   answers  {status, id, due ms, place, detail, note} per task: added (place, detail
--            and note of what was there before), duplicate, conflict, taken,
--            replaced, closed, passed (as added), left out (see parcels.lua)

-- include owner.lua
-- include call.lua
-- include admit.lua
-- include places.lua
-- include lane_member.lua
-- include order_key.lua
-- include order_head.lua
-- include keys.lua
-- include edits.lua
-- include attrs.lua
-- include index_state.lua
-- include log.lua
local n, tell_more = (#ARGV - 2) / 9, false
for i = 8, #ARGV, 9 do
  if ARGV[i] ~= '' then tell_more = true end
end
local kept = owner[8]
if tell_more then owner[8] = kept or '0' end -- one of them may replace another
-- include parcels.lua
if tell_more then tells = true end
local sub = string.sub
redis.call('HLEN', DATA)
redis.call('HLEN', TRAITS)
redis.call('ZCARD', LANES)
redis.call('HLEN', HISTORY)
redis.call('HLEN', MARKS)
redis.call('ZCARD', LOOKS)
local spoken = spoke(ARGV[2])
if ARGV[2] ~= '' then
  redis.call('HLEN', ATTRS)
  redis.call('ZCARD', INDEX)
end

-- include keyed.lua
local count, answers = ARGV[1], {}
for i = 1, n do
  if forgotten < MOST_NAMES then answers[i] = add_keyed(unpack(ARGV, 9 * i - 6, 9 * i + 2))
  else answers[i], count = {LEFT_OUT}, '0' end -- the next script counts
end
local pended = keyed_pends
if tells then post() end
forget(2 * n)
-- include count.lua
if watched then told() end
return {us, seq, inbox, pended and 1 or 0, answers}
