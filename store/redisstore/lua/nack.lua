#!lua flags=allow-oom
-- nack: end holds without success; the tasks are pending again, or dead. With a
-- fence it is recover: only holds whose deadline has passed.
--
-- KEYS  those of a shard
-- ARGV  1 epoch, or empty: not fenced  2 nonce  3 count  then per task, no id twice:
--       id, token, reason (0: pending again), delay ms or -1 for now,
--       1 to uncount the attempt, outcome to remember (0: none), error (empty: keep
--       the last one), id of the attempt's trace or empty, what a cell is told if
--       the task is dead then or empty
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, pended, attempts, traits, odd}, or -1 fenced
--   attempts  counted so far, per task
--   traits    per task, or nothing when no task has any
--   odd       {position, status, place, detail, note} per task that is still
--             where it was: not due (note: the deadline), stale,
--             wrong state, not found; and {position, ok} for one that is dead
--             because its cancellation was asked for; and {position, ok, due} for
--             one that was held ahead of its due time, and is due then

-- include owner.lua
-- include call.lua
-- include log.lua
local fenced = ARGV[1] ~= ''
if fenced and (owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2]) then return -1 end
-- include places.lua
-- include remember.lua
local ids = {}
for i = 4, #ARGV, 9 do ids[#ids + 1] = ARGV[i] end
local found = places(ids)
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
-- include parcels.lua
local cells = tells and cells_of(ids)
local traits = traits_of(ids)
local pasts = redis.call('HLEN', HISTORY) > 0 and redis.call('HMGET', HISTORY, unpack(ids)) or {}

local zadd, lanes, dlq, out, hset, history, forget, ended, attempts, odd = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
for i, id in ipairs(ids) do
  local at = 9 * i - 5
  local place, record, note = unpack(found[i])
  local status = OK
  local attempt, length, deadline = 0, 0, 0
  if place == PLACE_NONE then status = NOT_FOUND
  elseif place ~= PLACE_RUNNING then status = WRONG_STATE
  elseif #record < 30 or string.sub(record, 1, 16) ~= ARGV[at + 1] then status = STALE
  else
    deadline, attempt, length = struct.unpack('>i8I4I2', record, 17)
    if fenced and deadline > now then status = NOT_DUE end
  end
  if status == OK then
    local reason, outcome, why, past = ARGV[at + 2], ARGV[at + 5], ARGV[at + 6], pasts[i]
    local who = string.sub(record, 31, 30 + length)
    if string.byte(who, -1) == MARK_CANCELLED then -- see running.lua
      reason, outcome = REASON_CANCELLED, outcome == '0' and '0' or OUTCOME_CANCELLED
      odd[#odd + 1] = {i, OK}
    end
    local due = tonumber(string.sub(record, 31 + length)) or 0
    if outcome ~= '0' then
      past = remember(past, outcome, attempt, who, why, due, ARGV[at + 7])
      history[#history + 1], history[#history + 2] = id, past
    end
    if ARGV[at + 4] == '1' and attempt > 0 then attempt = attempt - 1 end
    if why == '' and note then why = string.sub(note, 31) end
    if reason == '0' then
      local again = ARGV[at + 3] == '-1' and now or soon + ARGV[at + 3]
      if again < due then
        again = due
        odd[#odd + 1] = {i, OK, due}
      end
      zadd[#zadd + 1] = again
      zadd[#zadd + 1] = id
      local member = traits and lane_member(id, zadd[#zadd - 1], traits[i])
      if member then lanes[#lanes + 1], lanes[#lanes + 2] = 0, member end
    else
      dlq[#dlq + 1], dlq[#dlq + 2] = now, id
      local key = traits and order_key(traits[i])
      if key then out[#out + 1] = order_member(key, id) end
      if cells and cells[i] then
        local say = ARGV[at + 8]
        leave(cells[i], CHANGE_DEAD, id, reason, attempt, due, who, why, '', say ~= '' and say)
      end
    end
    if reason == '0' and attempt == 0 and why == '' and not past then
      forget[#forget + 1] = id
    else
      hset[#hset + 1] = id
      hset[#hset + 1] = struct.pack('>BBI4i8', 1, reason, attempt, due) .. string.rep('\0', 16) .. why
    end
    ended[#ended + 1] = id
    if watched then
      local kind, due = CHANGE_RETRYING, zadd[#zadd - 1]
      if reason ~= '0' then
        kind, due = CHANGE_DEAD, 0
      elseif ARGV[at + 4] == '1' then
        kind = CHANGE_RELEASED
      end
      tell(kind, id, attempt, due, 0, reason, outcome, worker_of(who))
    end
  else
    odd[#odd + 1] = {i, status, place, record, status == NOT_DUE and deadline or note}
  end
  attempts[i] = attempt
end

local count, pended = ARGV[3], #zadd > 0
if pended then redis.call('ZADD', TASKS, unpack(zadd)) end
if #lanes > 0 then redis.call('ZADD', LANES, unpack(lanes)) end
if #dlq > 0 then redis.call('ZADD', DLQ, unpack(dlq)) end
if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
if #hset > 0 then redis.call('HSET', NOTES, unpack(hset)) end
if #history > 0 then redis.call('HSET', HISTORY, unpack(history)) end
if #forget > 0 then redis.call('HDEL', NOTES, unpack(forget)) end
if #ended > 0 then redis.call('HDEL', RUNNING, unpack(ended)) end
if tells then post() end
-- include count.lua
if watched then told() end
return {us, seq, inbox, pended and 1 or 0, attempts, traits or {}, odd}
