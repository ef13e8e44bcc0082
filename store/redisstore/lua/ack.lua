#!lua flags=allow-oom
-- ack: end holds; the tasks are done, and deleted unless they are to be kept.
--
-- KEYS  those of a shard
-- ARGV  1 retention ms  2 tokens, 16 bytes each  3 and on: an id for each, none
--       twice; then for each task that has a result its position and the result, for
--       each whose ack says something its position below 0 and that, and for each whose
--       attempt has a trace the number of ids and its position, and the id of the trace;
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd is done
--   odd  {position, status}: already, stale, wrong state, not found, no cell, left out (see parcels.lua)

-- include owner.lua
-- include call.lua
-- include attrs.lua
-- include log.lua
-- include parcels.lua
local sub, tokens = string.sub, ARGV[2]
local n = #tokens / 16
local records = redis.call('HMGET', RUNNING, unpack(ARGV, 3, n + 2))
local has_notes = redis.call('HLEN', NOTES) > 0
if has_notes then redis.call('HLEN', HISTORY) end
local has_traits = redis.call('HLEN', TRAITS) > 0
local results = #ARGV > n + 2 and {} or nil
local hearers -- of what acks say: looked up if one says something
for at = n + 3, #ARGV, 2 do
  local i = tonumber(ARGV[at])
  results[i] = ARGV[at + 1]
  if i < 0 then hearers = hearers or cells_of and cells_of({unpack(ARGV, 3, n + 2)}) or {} end
end
local odd, mute = {}, {}
local fit = tells and fitting({unpack(ARGV, 3, n + 2)}) or n
for i = 1, n do
  local record = records[i]
  if i > fit then odd[#odd + 1] = i
  elseif not record or sub(record, 1, 16) ~= sub(tokens, 16 * i - 15, 16 * i) then odd[#odd + 1] = i
  elseif hearers and results[-i] and not hearers[i] then
    odd[#odd + 1] = i
    mute[i] = true
  end
end
-- include finish_order.lua
if #odd == 0 and ARGV[1] == '0' then
  local ids = (owner[5] or tells or has_traits) and {unpack(ARGV, 3, n + 2)} or {}
  local attrs = attrs_of(ids)
  if tells then leave_done(ids, records, has_notes and redis.call('HMGET', NOTES, unpack(ids)) or {}, results or {}) end
  if has_traits then finish_order(ids, records) end
  redis.call('HDEL', DATA, unpack(ARGV, 3, n + 2))
  redis.call('HDEL', RUNNING, unpack(ARGV, 3, n + 2))
  if has_notes then -- no task has a history without a note
    redis.call('HDEL', NOTES, unpack(ARGV, 3, n + 2))
    redis.call('HDEL', HISTORY, unpack(ARGV, 3, n + 2))
  end
  if has_traits then redis.call('HDEL', TRAITS, unpack(ARGV, 3, n + 2)) end
  forget_attrs(ids, attrs)
  if tells then
    forget_tells(ids)
    post()
  end
  if watched then
    for i = 1, n do tell_held(CHANGE_DONE, ARGV[2 + i], records[i], 0, 0, OUTCOME_ACKED) end
    told(ids, attrs)
  end
  return {us, seq, inbox, odd}
end

redis.call('HLEN', DATA)
redis.call('ZCARD', DONE)
redis.call('ZCARD', KEPT)
redis.call('HLEN', HISTORY)
if #odd > 0 then
  -- include places.lua
  local ids = {}
  for k, i in ipairs(odd) do ids[k] = ARGV[2 + i] end
  local found = places(ids)
  for k, i in ipairs(odd) do
    local place, _, note = unpack(found[k])
    local status = WRONG_STATE
    if i > fit then status = LEFT_OUT
    elseif mute[i] then status = NO_CELL
    elseif place == PLACE_NONE then status = NOT_FOUND
    elseif place == PLACE_RUNNING then status = STALE
    elseif place == PLACE_DONE and note and sub(note, 15, 30) == sub(tokens, 16 * i - 15, 16 * i) then status = ALREADY
    end
    records[i] = false
    odd[k] = {i, status}
  end
end
local ids, held, of, traces = {}, {}, {}, {} -- those that are not odd
for i = 1, n do
  if records[i] then
    local k = #ids + 1
    ids[k], held[k], of[k], of[-k] = ARGV[2 + i], records[i], results and results[i], results and results[-i]
    traces[k] = results and results[n + i]
  end
end
if #ids == 0 then return {us, seq, inbox, odd} end
-- include finish.lua
local attrs = finish(ids, held, of, ARGV[1], traces)
if tells then post() end
if watched then
  for k, id in ipairs(ids) do tell_held(CHANGE_DONE, id, held[k], 0, 0, OUTCOME_ACKED) end
  told(ids, attrs)
end
return {us, seq, inbox, odd}
