-- finish ends holds whose running records these are: the tasks are done, and deleted unless
-- they are to be kept for a while, in ms. results are by position, nil for none, and what acks
-- say is among them, by position below 0; traces are ids by position. It returns
-- the attributes of tasks that are deleted. The caller says in has_notes and has_traits
-- whether tasks of the shard have any, and has looked at every key.
-- include remember.lua
local function finish(ids, records, results, retention, traces)
  local attrs = retention == '0' and attrs_of(ids) or nil
  local notes = has_notes and redis.call('HMGET', NOTES, unpack(ids)) or {}
  if tells then leave_done(ids, records, notes, results) end
  if has_traits then finish_order(ids, records) end
  redis.call('HDEL', RUNNING, unpack(ids))
  if retention == '0' then
    redis.call('HDEL', DATA, unpack(ids))
    redis.call('HDEL', NOTES, unpack(ids))
    redis.call('HDEL', HISTORY, unpack(ids))
    if has_traits then redis.call('HDEL', TRAITS, unpack(ids)) end
    forget_attrs(ids, attrs)
    if tells then forget_tells(ids) end
    return attrs
  end
  local past = has_notes and redis.call('HMGET', HISTORY, unpack(ids)) or {} -- no task has a history without a note
  local done, kept, hset, history = {}, {}, {}, {}
  for k, id in ipairs(ids) do
    local record, attempt, due, who = records[k], 0, 0, ''
    if #record >= 30 then
      local length
      attempt, length = struct.unpack('>I4I2', record, 25)
      who = string.sub(record, 31, 30 + length)
      due = tonumber(string.sub(record, 31 + length)) or 0
    end
    local told = remember(past[k], OUTCOME_ACKED, attempt, who, '', due, traces[k] or '')
    if results[k] then told = told .. struct.pack('>I4B', #results[k] + 1, 0) .. results[k] end
    history[2 * k - 1], history[2 * k] = id, told
    done[2 * k - 1], done[2 * k] = now, id
    kept[2 * k - 1], kept[2 * k] = soon + retention, id
    hset[2 * k - 1] = id
    hset[2 * k] = struct.pack('>BBI4i8', 1, 0, attempt, due) .. string.sub(record, 1, 16) .. (notes[k] and string.sub(notes[k], 31) or '')
  end
  redis.call('ZADD', DONE, unpack(done))
  redis.call('ZADD', KEPT, unpack(kept))
  redis.call('HSET', NOTES, unpack(hset))
  redis.call('HSET', HISTORY, unpack(history))
  return nil
end
