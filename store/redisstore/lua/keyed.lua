-- add_keyed adds a task, the key of which may be taken, or one without a key among those of its ordering
-- key. It returns the answer of add_keyed.lua about it, and sets keyed_pends when it made a task pending.
-- The caller included what is in front of it in add_keyed.lua, and has spoken, kept, tells and watched.
local keyed_pends = false

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
    tells = true
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

local function write_mark(key, till, due, id, past)
  redis.call('HSET', MARKS, key, struct.pack('>i8i8B', till, due, #id) .. id .. past)
end

local function add_keyed(id, due, record, traits, attrs, cell, key, window, rule)
  rule = tonumber(rule)
  local mark, taken, place, till, added = key ~= '' and mark_of(key), false, nil, 0, ADDED
  if mark then taken, place = is_taken(mark) end
  local again = taken and (mark.id == id or was_past(mark.past, id))
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
      write_mark(key, mark.till, due, mark.id, one_more(mark.past, id))
      if mark.till == 0 then redis.call('ZADD', LOOKS, rest(due + 0), key) end
      mark.due, keyed_pends = due, true
      place = {PLACE_PENDING, due, false}
    elseif not again and rule ~= KEY_RETURN then
      local stored = redis.call('HGET', DATA, mark.id)
      if rule == KEY_REJECT or not stored or sub(stored, 2, 9) ~= sub(record, 2, 9) then status = TAKEN end
    end
    return {status, mark.id, mark.due, unpack(place)}
  elseif key ~= '' and closed(traits) then
    return {CLOSED, id, due, PLACE_NONE}
  else
    local old, stored = places({id})[1], redis.call('HGET', DATA, id)
    if stored and (old[1] == PLACE_PENDING or old[1] == PLACE_RUNNING) then
      return {sub(stored, 2, 9) == sub(record, 2, 9) and DUPLICATE or CONFLICT, id, due, unpack(old)}
    elseif key == '' and closed(traits) then
      return {CLOSED, id, due, PLACE_NONE}
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
        write_mark(key, till, due, id, mark and one_more(mark.past, mark.id) or '')
        redis.call('ZADD', LOOKS, till ~= 0 and till or rest(due + 0), key)
      end
      if watched then tell(CHANGE_ENQUEUED, id, 0, due, 1, 0, 0, '', attrs) end
      keyed_pends = true
      return {added, id, due, unpack(old)}
    end
  end
end
