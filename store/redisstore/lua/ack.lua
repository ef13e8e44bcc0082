#!lua flags=allow-oom
-- ack: end holds; the tasks are done, and deleted unless they are to be kept.
--
-- KEYS  those of a shard
-- ARGV  1 retention ms  2 tokens, 16 bytes each  3 and on: an id for each, none
--       twice; then, unless retention is 0, for each task that has a result its
--       position and the result; and last the moment (see call.lua)
--
-- returns {us, seq, odd}; a task that is not odd is done
--   odd  {position, status}: already, stale, wrong state, not found

-- include owner.lua
-- include call.lua
-- include attrs.lua
-- include log.lua
local sub, tokens = string.sub, ARGV[2]
local n = #tokens / 16
local records = redis.call('HMGET', RUNNING, unpack(ARGV, 3, n + 2))
local notes = redis.call('HLEN', NOTES) > 0
if notes then redis.call('HLEN', HISTORY) end
local traits = redis.call('HLEN', TRAITS) > 0
local odd = {}
for i = 1, n do
  local record = records[i]
  if not record or sub(record, 1, 16) ~= sub(tokens, 16 * i - 15, 16 * i) then odd[#odd + 1] = i end
end
-- finished takes tasks of ordering keys out of their lines. A held one has a + in front
-- of its due time.
local function finished()
  local ids = {}
  for i = 1, n do
    local record = records[i]
    if record and #record >= 30 and string.byte(record, 31 + struct.unpack('>I2', record, 29)) == 43 then
      ids[#ids + 1] = ARGV[2 + i]
    end
  end
  if #ids == 0 then return end
  -- include order_key.lua
  local out = {}
  for k, t in ipairs(redis.call('HMGET', TRAITS, unpack(ids))) do
    local key = order_key(t)
    if key then out[#out + 1] = order_member(key, ids[k]) end
  end
  if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
end
if #odd == 0 and ARGV[1] == '0' then
  local ids = owner[5] and {unpack(ARGV, 3)} or {}
  local attrs = attrs_of(ids)
  if traits then finished() end
  redis.call('HDEL', DATA, unpack(ARGV, 3))
  redis.call('HDEL', RUNNING, unpack(ARGV, 3))
  if notes then -- no task has a history without a note
    redis.call('HDEL', NOTES, unpack(ARGV, 3))
    redis.call('HDEL', HISTORY, unpack(ARGV, 3))
  end
  if traits then redis.call('HDEL', TRAITS, unpack(ARGV, 3)) end
  forget_attrs(ids, attrs)
  if watched then
    for i = 1, n do tell_held(CHANGE_DONE, ARGV[2 + i], records[i], 0, 0, OUTCOME_ACKED) end
    told(ids, attrs)
  end
  return {us, seq, odd}
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
    if place == PLACE_NONE then status = NOT_FOUND
    elseif place == PLACE_RUNNING then status = STALE
    elseif place == PLACE_DONE and note and sub(note, 15, 30) == sub(tokens, 16 * i - 15, 16 * i) then status = ALREADY
    end
    records[i] = false
    odd[k] = {i, status}
  end
end
local ids = {}
for i = 1, n do
  if records[i] then ids[#ids + 1] = ARGV[2 + i] end
end
if #ids == 0 then return {us, seq, odd} end
local attrs
if traits then finished() end
if ARGV[1] == '0' then
  attrs = attrs_of(ids)
  redis.call('HDEL', DATA, unpack(ids))
  redis.call('HDEL', NOTES, unpack(ids))
  redis.call('HDEL', HISTORY, unpack(ids))
  if traits then redis.call('HDEL', TRAITS, unpack(ids)) end
  forget_attrs(ids, attrs)
else
  -- include remember.lua
  local old = notes and redis.call('HMGET', NOTES, unpack(ids)) or {}
  local past = notes and redis.call('HMGET', HISTORY, unpack(ids)) or {}
  local results = {}
  for at = n + 3, #ARGV, 2 do results[tonumber(ARGV[at])] = ARGV[at + 1] end
  local done, kept, hset, history = {}, {}, {}, {}
  local k = 0
  for i = 1, n do
    local record = records[i]
    if record then
      k = k + 1
      local attempt, due, who = 0, 0, ''
      if #record >= 30 then
        local length
        attempt, length = struct.unpack('>I4I2', record, 25)
        who = sub(record, 31, 30 + length)
        due = tonumber(sub(record, 31 + length)) or 0
      end
      local told = remember(past[k], 1, attempt, who, '')
      if results[i] then told = told .. struct.pack('>I4B', #results[i] + 1, 0) .. results[i] end
      history[2 * k - 1], history[2 * k] = ids[k], told
      done[2 * k - 1], done[2 * k] = now, ids[k]
      kept[2 * k - 1], kept[2 * k] = soon + ARGV[1], ids[k]
      hset[2 * k - 1] = ids[k]
      hset[2 * k] = struct.pack('>BBI4i8', 1, 0, attempt, due) .. sub(record, 1, 16) .. (old[k] and sub(old[k], 31) or '')
    end
  end
  redis.call('ZADD', DONE, unpack(done))
  redis.call('ZADD', KEPT, unpack(kept))
  redis.call('HSET', NOTES, unpack(hset))
  redis.call('HSET', HISTORY, unpack(history))
end
redis.call('HDEL', RUNNING, unpack(ids))
if watched then
  for i = 1, n do
    if records[i] then tell_held(CHANGE_DONE, ARGV[2 + i], records[i], 0, 0, OUTCOME_ACKED) end
  end
  told(ids, attrs)
end
return {us, seq, odd}
