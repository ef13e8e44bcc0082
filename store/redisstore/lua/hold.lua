#!lua flags=allow-oom
-- hold: take pending, due tasks for workers; dead-letter expired and unreadable ones.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 number of runs r, then r times: number of tasks,
--       visibility ms, worker and node (see running.lua); then the tokens, 16 bytes
--       each; then the ids, none twice. Visibility may be followed by
--       :before:until:ahead, all ms or 0: see store.Hold
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, dues, records, odd, cells}, or -1 fenced
-- Of all that follows there is as much as there are tasks before those that are left out,
-- see bodies.lua.
--   dues     due ms, false when not pending; all in one string when nothing is odd
--   records  of data, false when not held
--   cells    entries of TELLS: the cell that a task tells, behind a mark when it has a journal, false for
--            none of both; not there when no task of the shard has one. Journals count as bodies
--   odd      {position, status, running record, note} per task that is not
--            simply held: ok held all the same, not due, wrong state,
--            not found, corrupt, expired, late; behind, with the id of the
--            head of its ordering key and the due ms of that, false when it is held
-- A task that is not odd is held at its first attempt for the visibility of its run
-- from now, or from its due time if that is later, until its until at most.

-- include owner.lua
-- include call.lua
-- include log.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
local sub, byte = string.sub, string.byte
local at = 3 * ARGV[3] + 4
local tokens, first = ARGV[at], at + 1
-- include bodies.lua
local records = bodies(DATA, ARGV, first, #ARGV)
local n = #records
local last = at + n
-- include parcels.lua
local cells = tells and redis.call('HMGET', TELLS, unpack(ARGV, first, last)) or nil
if cells then -- those whose journals do not fit are left out, too
  local bytes = 0
  for i = 1, n do
    if bytes >= MAX_BODIES then
      records = {unpack(records, 1, i - 1)}
      n, last = i - 1, at + i - 1
      break
    end
    if cells[i] and byte(cells[i]) == 0 then bytes = bytes + struct.unpack('>I4', cells[i], 2) end
  end
end
local dues = redis.call('ZMSCORE', TASKS, unpack(ARGV, first, last))
local notes = redis.call('HLEN', NOTES) > 0 and redis.call('HMGET', NOTES, unpack(ARGV, first, last))
-- Tasks that are taken leave their lanes, too.
local lanes, traits, ordered = {}, nil, {}
-- include lane_member.lua
-- include order_key.lua
if redis.call('HLEN', TRAITS) > 0 then
  redis.call('ZCARD', LANES)
  traits = redis.call('HMGET', TRAITS, unpack(ARGV, first, last))
  for i = 1, n do
    lanes[i] = lane_member(ARGV[at + i], dues[i], traits[i])
    ordered[i] = order_key(traits[i])
  end
end
local function leave_lanes(taken)
  local members = {}
  for _, i in ipairs(taken) do members[#members + 1] = lanes[i] end
  if #members > 0 then redis.call('ZREM', LANES, unpack(members)) end
end

-- leads reports whether a task is the first of its line by a look at that alone. Then
-- its place is noted in out and heads: it stays the first from now on.
local out, heads = {}, {}
local function leads(i)
  local key, id = ordered[i], ARGV[at + i]
  local prefix = string.char(#key) .. key
  local first = redis.call('ZRANGE', ORDER, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', '0', '1')[1]
  if not first or sub(first, #prefix + 9) ~= id then return false end
  local stands = sub(first, #prefix + 1, #prefix + 8)
  if stands == never then return true end
  if stands ~= struct.pack('>i8', math.max(1, dues[i] + 0)) then return false end
  out[#out + 1] = first
  heads[#heads + 1], heads[#heads + 2] = '0', prefix .. never .. id
  return true
end
local function stand_first()
  if #out > 0 then redis.call('ZREM', ORDER, unpack(out)) end
  if #heads > 0 then redis.call('ZADD', ORDER, unpack(heads)) end
end

-- include running.lua
-- What is as expected: pending, due, with a header without flags, no notes, and the head
-- of its ordering key if it has one.
local hset, odd = {}, {}
local i, held = 0, 0
local visibilities, bounds, late, befores, reaches = {}, {}, {}, {}, {} -- by run, of those with bounds

-- ahead reports whether a task that is due later is held before: nothing else may decide
-- about it until then.
local function ahead(run, due, key, expires)
  return reaches[run] and due <= reaches[run] and not key and not (expires > 0 and expires <= due)
    and not (befores[run] and befores[run] <= due) and not (bounds[run] and bounds[run] <= due)
end

-- hold_of is what a running record says of the hold, between the token and the due time:
-- it begins now, or at the due time if that is later.
local function hold_of(run, due, visibility, attempt)
  local from, begins = soon, started
  if due > now then from, begins = due, began(due) end
  local deadline, who = from + visibility, ARGV[run + 2] .. begins
  if bounds[run] then deadline = math.min(deadline, bounds[run]) end
  return struct.pack('>i8I4I2', deadline, attempt, #who) .. who
end

for run = 4, at - 1, 3 do
  local visibility = ARGV[run + 1]
  if string.find(visibility, ':', 1, true) then
    local v, before, bound, reach = string.match(visibility, '(%d+):(%d+):(%d+):(%d+)')
    visibility, late[run] = v, before ~= '0' and before + 0 <= now
    visibilities[run], bounds[run] = v, bound ~= '0' and bound + 0 or nil
    befores[run], reaches[run] = before ~= '0' and before + 0 or nil, reach ~= '0' and now + reach or nil
  end
  local last_due, middle -- those of one due time have the same
  for k = 1, math.min(ARGV[run], n - i) do
    i = i + 1
    local due, record = dues[i], records[i]
    if due and record and byte(record) == 16 and (due + 0 <= now or ahead(run, due + 0, ordered[i], 0)) and not (notes and notes[i]) and not late[run] and not (ordered[i] and not leads(i)) then
      if due ~= last_due then last_due, middle = due, hold_of(run, due + 0, visibility, 1) end
      hset[held + 1] = ARGV[at + i]
      hset[held + 2] = sub(tokens, 16 * i - 15, 16 * i) .. middle .. (ordered[i] and '+' or '') .. due
      held = held + 2
    else
      odd[#odd + 1] = {i, run}
    end
  end
end
if #odd == 0 then
  redis.call('HSET', RUNNING, unpack(hset))
  redis.call('ZREM', TASKS, unpack(ARGV, first, last))
  if traits then
    local all = {}
    for k = 1, n do all[k] = k end
    leave_lanes(all)
    stand_first()
  end
  if watched then
    for k = 1, n do tell_held(CHANGE_HELD, hset[2 * k - 1], hset[2 * k], 1) end
    told()
  end
  return {us, seq, inbox, table.concat(dues, ' '), records, odd, cells}
end
-- include places.lua
-- include edits.lua
local ids, edited = {}, {}
for k, o in ipairs(odd) do ids[k] = ARGV[at + o[1]] end
local found = places(ids)
-- include order_head.lua
local taken, dlq, hnote, gone = {}, {}, {}, {}
local is_odd, left = {}, {}
for _, o in ipairs(odd) do is_odd[o[1]] = true end
for i = 1, n do
  if not is_odd[i] then
    taken[#taken + 1] = ARGV[at + i]
    left[#left + 1] = i
  end
end
for k, o in ipairs(odd) do
  local i, run, id = o[1], o[2], ids[k]
  local place, detail, note = unpack(found[k])
  local record, token = records[i], sub(tokens, 16 * i - 15, 16 * i)
  local status, running, key = WRONG_STATE, false, ordered[i]
  if place == PLACE_RUNNING and sub(detail, 1, 16) == token then
    status, running = OK, detail -- a repeated call
  elseif place == PLACE_NONE then
    status = NOT_FOUND
  elseif place == PLACE_PENDING then
    if not record then -- it is gone: that shows as a record that cannot be read
      record = ''
      gone[#gone + 1], gone[#gone + 2] = id, record
    end
    local version, flags = 0, 0
    if #record > 8 then version, flags = math.floor(byte(record) / 16), byte(record) % 16 end
    local attempt, pos, reason, expires, visibility = 0, 10, 0, 0, visibilities[run] or ARGV[run + 1]
    if note and #note >= 30 then attempt = struct.unpack('>I4', note, 3) end
    if flags % 2 == 1 and #record >= pos + 7 then expires, pos = struct.unpack('>i8', record, pos) end
    if math.floor(flags / 2) % 2 == 1 and #record >= pos + 7 then visibility = struct.unpack('>i8', record, pos) end
    if version ~= 1 or flags > 7 then
      status, reason = CORRUPT, REASON_CORRUPT
    elseif expires ~= 0 and expires <= now then
      status, reason = EXPIRED, REASON_EXPIRED
    elseif detail + 0 > now and not ahead(run, detail + 0, key, expires) then
      status = NOT_DUE
    else
      status = OK
      if watched and flags >= 4 then edited[id] = (edits(record) or 0) + 1 end
      if key then
        local head, its = order_head(key)
        if head and head ~= id then status, running, note = BEHIND, head, its end
      end
      if status == OK and late[run] then status = LATE end
    end
    if status == OK then
      running = token .. hold_of(run, detail + 0, visibility, attempt + 1) .. (key and '+' or '') .. detail
      hset[held + 1], hset[held + 2] = id, running
      held = held + 2
      taken[#taken + 1] = id
      left[#left + 1] = i
      if key then
        out[#out + 1] = order_member(key, id, detail)
        heads[#heads + 1], heads[#heads + 2] = '0', order_member(key, id)
      end
    end
    if reason > 0 then
      if key then out[#out + 1], out[#out + 2] = order_member(key, id, detail), order_member(key, id) end
      dlq[#dlq + 1], dlq[#dlq + 2] = now, id
      hnote[#hnote + 1] = id
      hnote[#hnote + 1] = struct.pack('>BBI4i8', 1, reason, attempt, detail) .. string.rep('\0', 16) .. (note and sub(note, 31) or '')
      taken[#taken + 1] = id
      left[#left + 1] = i
      local cell = cells and cell_of(id, cells[i])
      if cell then
        local _, why = past(note)
        leave(cell, CHANGE_DEAD, id, reason, attempt, detail, '', why, '')
      end
      if watched then tell(CHANGE_DEAD, id, attempt, 0, 0, reason) end
    end
  end
  if status ~= OK then records[i] = false end
  odd[k] = {i, status, running, note}
end
if held > 0 then redis.call('HSET', RUNNING, unpack(hset)) end
if #dlq > 0 then
  redis.call('ZADD', DLQ, unpack(dlq))
  redis.call('HSET', NOTES, unpack(hnote))
end
if #gone > 0 then redis.call('HSET', DATA, unpack(gone)) end
if #taken > 0 then redis.call('ZREM', TASKS, unpack(taken)) end
leave_lanes(left)
stand_first()
if tells then post() end
if watched then
  for k = 1, held, 2 do tell_held(CHANGE_HELD, hset[k], hset[k + 1], edited[hset[k]] or 1) end
  told()
end
return {us, seq, inbox, dues, records, odd, cells}
