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
--            replaced, closed, passed (as added)

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

-- put makes a task pending that is in no index.
local function put(id, due, record, traits, attrs, cell)
  redis.call('ZADD', TASKS, due, id)
  redis.call('HSET', DATA, id, record)
  if traits ~= '' then
    redis.call('HSET', TRAITS, id, traits)
    local member = lane_member(id, due, traits)
    if member then redis.call('ZADD', LANES, 0, member) end
    local key = order_key(traits)
    if key then redis.call('ZADD', ORDER, 0, order_member(key, id, due)) end
  end
  if cell ~= '' then
    if not kept then redis.call('HSET', OWNER, 'in', 0, 'schema', 2) end
    kept = true
    redis.call('HSET', TELLS, id, cell)
  end
  write_spoken(spoken)
  if attrs ~= '' then
    local zadd = {}
    members(zadd, id, attrs, 0)
    redis.call('HSET', ATTRS, id, attrs)
    in_parts('ZADD', INDEX, zadd)
  end
end

-- closed says whether the shard takes no task with these traits.
local function closed(traits)
  if not owner[4] then return false end
  local key = order_key(traits)
  return not key or not order_head(key)
end

-- after is a new record as the version after that of an old one.
local function after(old, record)
  local count = old and #old >= 9 and edits(old) or 0
  local _, from = edits(record)
  local flags = string.char(string.byte(record) + 4)
  return flags .. sub(record, 2, from - 1) .. struct.pack('>i8', count + 1) .. sub(record, from)
end

-- clear forgets what a task leaves beside its record.
local function clear(id, due)
  local traits = redis.call('HGET', TRAITS, id)
  local member = traits and due and lane_member(id, due, traits)
  if member then redis.call('ZREM', LANES, member) end
  forget_attrs({id}, attrs_of({id}))
  local key = due and order_key(traits)
  if key then redis.call('ZREM', ORDER, order_member(key, id, due), order_member(key, id)) end
  redis.call('HDEL', NOTES, id)
  redis.call('HDEL', TRAITS, id)
  if tells then forget_tells({id}) end
  redis.call('HDEL', HISTORY, id)
end

local function write_mark(key, till, due, id, last)
  redis.call('HSET', MARKS, key, struct.pack('>i8i8B', till, due, #id) .. id .. last)
end

local count, pended, answers = ARGV[1], false, {}
for i = 1, n do
  local id, due, record, traits, attrs, cell, key, window, rule = unpack(ARGV, 9 * i - 6, 9 * i + 2)
  rule = tonumber(rule)
  local mark, taken, place, till, added = key ~= '' and mark_of(key), false, nil, 0, ADDED
  if mark then taken, place = is_taken(mark) end
  local again = taken and (mark.id == id or mark.last == id)
  if taken and not again and rule == KEY_REPLACE and place[1] ~= PLACE_PENDING then
    taken, till, added = false, mark.till, PASSED -- the key passes to the new task
  end
  if taken then
    local status = DUPLICATE
    if not again and rule == KEY_REPLACE then
      status = REPLACED
      local told_cell = tells and cells_of({mark.id})[1]
      if told_cell then
        local attempt, why = past(place[3])
        leave(told_cell, CHANGE_DELETED, mark.id, 0, attempt, place[2], '', why, '')
      end
      clear(mark.id, place[2])
      local next = after(redis.call('HGET', DATA, mark.id), record)
      put(mark.id, due, next, traits, attrs, cell)
      if watched then tell(CHANGE_UPDATED, mark.id, 0, due, edits(next) + 1, 0, 0, '', attrs) end
      write_mark(key, mark.till, due, mark.id, id)
      if mark.till == 0 then redis.call('ZADD', LOOKS, rest(due + 0), key) end
      mark.due, pended = due, true
      place = {PLACE_PENDING, due, false}
    elseif not again and rule ~= KEY_RETURN then
      local stored = redis.call('HGET', DATA, mark.id)
      if rule == KEY_REJECT or not stored or sub(stored, 2, 9) ~= sub(record, 2, 9) then status = TAKEN end
    end
    answers[i] = {status, mark.id, mark.due, unpack(place)}
  elseif key ~= '' and closed(traits) then
    answers[i] = {CLOSED, id, due, PLACE_NONE}
  else
    local old, stored = places({id})[1], redis.call('HGET', DATA, id)
    if stored and (old[1] == PLACE_PENDING or old[1] == PLACE_RUNNING) then
      answers[i] = {sub(stored, 2, 9) == sub(record, 2, 9) and DUPLICATE or CONFLICT, id, due, unpack(old)}
    elseif key == '' and closed(traits) then
      answers[i] = {CLOSED, id, due, PLACE_NONE}
    else
      if stored then
        redis.call('ZREM', DLQ, id)
        redis.call('ZREM', DONE, id)
        redis.call('ZREM', KEPT, id)
        clear(id, false)
      end
      put(id, due, record, traits, attrs, cell)
      if till == 0 and window ~= '0' then till = soon + window end
      if key ~= '' then
        write_mark(key, till, due, id, '')
        redis.call('ZADD', LOOKS, till ~= 0 and till or rest(due + 0), key)
      end
      if watched then tell(CHANGE_ENQUEUED, id, 0, due, 1, 0, 0, '', attrs) end
      answers[i] = {added, id, due, unpack(old)}
      pended = true
    end
  end
end
if tells then post() end
forget(2 * n)
-- include count.lua
if watched then told() end
return {us, seq, inbox, pended and 1 or 0, answers}
