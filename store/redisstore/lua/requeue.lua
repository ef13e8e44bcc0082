#!lua flags=allow-oom
-- requeue: make dead tasks due now, with fresh attempts and without an expiry.
--
-- KEYS  those of a shard
-- ARGV  1 count  2 and on: ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, pended, traits, odd}; a task that is not odd is pending
--   traits  per task, or nothing when no task has any
--   odd  {position, status}: wrong state the record cannot be read, not dead, closed

-- include owner.lua
-- include call.lua
-- include log.lua
-- include edits.lua
-- include places.lua
local ids = {unpack(ARGV, 2)}
local found = places(ids)
local records = redis.call('HMGET', DATA, unpack(ids))
-- include lane_member.lua
-- include order_key.lua
-- include order_head.lua
-- include traits.lua
-- include parcels.lua
local cells = tells and cells_of(ids)
local traits = traits_of(ids)
local order, lanes, zadd, data, hset, forget, back, odd = {}, {}, {}, {}, {}, {}, {}, {}
for i, p in ipairs(found) do
  local id, record, note = ids[i], records[i], p[3]
  local key = traits and order_key(traits[i])
  if p[1] ~= PLACE_DEAD or not record then
    odd[#odd + 1] = {i, NOT_FOUND}
  elseif #record < 9 or math.floor(string.byte(record) / 16) ~= 1 or (note and string.byte(note, 2) == REASON_CORRUPT) then
    odd[#odd + 1] = {i, WRONG_STATE}
  elseif key and owner[4] and not order_head(key) then
    odd[#odd + 1] = {i, CLOSED}
  else
    if key then order[#order + 1], order[#order + 2] = 0, order_member(key, id, now) end
    zadd[#zadd + 1], zadd[#zadd + 2] = now, id
    local member = traits and lane_member(id, now, traits[i])
    if member then lanes[#lanes + 1], lanes[#lanes + 2] = 0, member end
    back[#back + 1] = id
    if watched then tell(CHANGE_REQUEUED, id, 0, now, (edits(record) or 0) + 1) end
    if cells and cells[i] then
      local _, why = past(note)
      leave(cells[i], CHANGE_REQUEUED, id, 0, 0, now, '', why, '')
    end
    local flags = string.byte(record)
    if flags % 2 == 1 then -- cut the expiry out
      data[#data + 1] = id
      data[#data + 1] = string.char(flags - 1) .. string.sub(record, 2, 9) .. string.sub(record, 18)
    end
    if note and #note >= 30 then -- its history goes on, which takes a note
      hset[#hset + 1] = id
      hset[#hset + 1] = struct.pack('>BBI4i8', 1, 0, 0, 0) .. string.rep('\0', 16) .. string.sub(note, 31)
    else
      forget[#forget + 1] = id
    end
  end
end
local count, pended = ARGV[1], #back > 0
if pended then
  redis.call('ZADD', TASKS, unpack(zadd))
  if #lanes > 0 then redis.call('ZADD', LANES, unpack(lanes)) end
  if #order > 0 then redis.call('ZADD', ORDER, unpack(order)) end
  if #data > 0 then redis.call('HSET', DATA, unpack(data)) end
  if #hset > 0 then redis.call('HSET', NOTES, unpack(hset)) end
  if #forget > 0 then redis.call('HDEL', NOTES, unpack(forget)) end
  redis.call('ZREM', DLQ, unpack(back))
  if tells then post() end
end
-- include count.lua
if watched then told() end
return {us, seq, inbox, pended and 1 or 0, traits or {}, odd}
