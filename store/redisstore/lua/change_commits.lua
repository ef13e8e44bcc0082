-- Makes commits, each as a whole or not at all. The scripts that include it take, besides
-- what owner.lua, admit.lua and call.lua say:
--
-- ARGV  1 epoch, or empty: not fenced  2 nonce  3 count  4 numbers, 2 bytes each: commits,
--       then pieces of each kind, in this order: puts, holds that must be alive, acks, removes,
--       cancels, adds without a key, parcels to send, numbers to take, numbers to drop, adds with a key, receives, finishes
--       5 for each piece its commit in 2 bytes  6 attributes of the adds (see put_attrs.lua)
--       7 number of adds with traits, and for each its position and traits
--       then the pieces:
--         put     id, version that it must have (-1: any), the cell as cell.go has it, with
--                 the version that it has when it is made, or empty: it is deleted
--         hold    id, token
--         ack     id, token, retention ms, result, what it says or empty, id of the attempt's trace or empty
--         remove  id, 1 when it must be pending and have no attempt, 2 when it must be dead
--         cancel  id
--         add     id, due ms, record, cell that it tells or empty
--         send    1 for the in-box or 2 for the out-box, and the parcel as parcel.go has it; or 3, the position of
--                 the queue in 2 bytes, and the parcel
--         take, drop  number
--         add with a key  position among the adds of the commit, and what add_keyed.lua takes of a task
--         receive  id of the receipt, head, numbers and refused ones, 8 bytes each
--         finish  position of the queue, numbers joined by spaces
--       then the names of queues, whose streams are the last keys; how many they are; an estimate of the clock in us;
--       and at the end what only the server has in its INFO that may make them, or empty
--       No cell and no task is in two commits, nor twice among the pieces of a kind of one.
--
-- returns {us, seq, inbox, pended, odd, keyed}, -1 fenced, -2 the shard is another topic's, -3 this is
--   another server, or -4 a receipt cannot be read; a commit that is not odd was made
--   odd  {position, status, id, cell}: stale (of a cell, and as it is stored, or false),
--        hold lost, no cell, wrong state, conflict (of a task), closed, window full; left out (see parcels.lua); received (packed numbers
--        that were made, and that were refused)
--   keyed  {position, position among the adds, answer of add_keyed.lua}

if ARGV[1] ~= '' and (owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2]) then return -1 end
-- include admit.lua
local only = table.remove(ARGV)
if only ~= '' and not string.find(redis.call('INFO', 'server'), only, 1, true) then return -3 end
local estimate, named = tonumber(table.remove(ARGV)), tonumber(table.remove(ARGV))
local names_of = {} -- queues
for i = named, 1, -1 do names_of[i] = table.remove(ARGV) end
local function stream(i) return KEYS[#KEYS - named + i] end
local kept = owner[8]
-- include log.lua
owner[8] = owner[8] or '0'
-- include parcels.lua
-- include attrs.lua
-- include put_attrs.lua
-- include places.lua
-- include lane_member.lua
-- include order_key.lua
-- include put_traits.lua
local byte, sub, take, pack = string.byte, string.sub, struct.unpack, struct.pack
local commits, puts, under, acks, removes, cancels, adds, sends, takes, drops, keyed, receives, finishes = take('>I2I2I2I2I2I2I2I2I2I2I2I2I2', ARGV[4])
local count, of, attributes, k = ARGV[3], ARGV[5], ARGV[6], tonumber(ARGV[7])
local bad, odd = {}, {} -- by commit: something is in its way
local function refuse(c, status, id, cell)
  if bad[c] then return end
  bad[c] = true
  odd[#odd + 1] = {c, status, id, cell}
end

-- Each kind of pieces has an offset in the arguments, and one among all pieces.
local at = 8 + 2 * k
local put_at, hold_at = at, at + 3 * puts
local ack_at = hold_at + 2 * under
local remove_at = ack_at + 6 * acks
local cancel_at = remove_at + 2 * removes
local add_at = cancel_at + cancels
local send_at = add_at + 4 * adds
local take_at = send_at + sends
local drop_at = take_at + takes
local keyed_at = drop_at + drops
local receive_at = keyed_at + 10 * keyed
local finish_at = receive_at + 4 * receives
local function commit_of(piece)
  local high, low = byte(of, 2 * piece - 1, 2 * piece)
  return 256 * high + low
end

-- column returns one value of each piece of a kind.
local function column(from, width, n)
  local all = {}
  for i = 1, n do all[i] = ARGV[from + width * (i - 1)] end
  return all
end

local function is_part(id)
  local kind = byte(id)
  return kind >= 65 and kind <= 90
end

-- What is in the way: first of all what is settled.
local receipts, received, keyed_piece = {}, {}, puts + under + acks + removes + cancels + adds + sends + takes + drops
local receipt, settled, taken
if receives > 0 then
  local receipt_of, settled_by, taken_by, has_room = (function()
    -- include receive.lua
    return receipt, settled, taken, has_room
  end)()
  receipt, settled, taken = receipt_of, settled_by, taken_by
  for i, old in ipairs(redis.call('HMGET', CELLS, unpack(column(receive_at, 4, receives)))) do
    local from, c, made, refused = receive_at + 4 * i - 4, commit_of(keyed_piece + keyed + i), {}, {}
    receipts[i], received[c] = receipt(old), i
    if not receipts[i] then return -4 end
    settled(receipts[i], ARGV[from + 2], made, refused)
    settled(receipts[i], ARGV[from + 3], made, refused)
    if #made + #refused > 0 then
      refuse(c, RECEIVED, table.concat(made), table.concat(refused))
    elseif not has_room(receipts[i], ARGV[from + 1], ARGV[from + 2] .. ARGV[from + 3]) then
      refuse(c, WINDOW_FULL)
    end
  end
end
local cells, olds, parts = column(put_at, 3, puts), {}, false
if puts > 0 then
  olds = redis.call('HMGET', CELLS, unpack(cells))
  for i = 1, puts do parts = parts or is_part(cells[i]) end
  if parts then
    local of_parts = redis.call('HMGET', PARTS, unpack(cells))
    for i = 1, puts do
      if is_part(cells[i]) then olds[i] = of_parts[i] end
    end
  end
  redis.call('ZCARD', WAKES)
  redis.call('ZCARD', LISTS)
end
local versions = {}
for i = 1, puts do
  local want, old = ARGV[put_at + 3 * i - 2], olds[i]
  if old and (#old < 25 or #old < 25 + byte(old, 17)) then -- one that cannot be read is taken for none
    old = false
    olds[i] = old
  end
  versions[i] = old and take('>i8', old) or 0
  if want ~= '-1' and want + 0 ~= versions[i] then refuse(commit_of(i), STALE, cells[i], old) end
end

local holds, tokens = column(hold_at, 2, under), column(hold_at + 1, 2, under)
for i = 1, acks do holds[under + i], tokens[under + i] = ARGV[ack_at + 6 * i - 6], ARGV[ack_at + 6 * i - 5] end
local records = #holds > 0 and redis.call('HMGET', RUNNING, unpack(holds)) or {}
for i = 1, #holds do
  if not records[i] or sub(records[i], 1, 16) ~= tokens[i] then refuse(commit_of(puts + i), HOLD_LOST, holds[i]) end
end
local hearers -- of what acks say: looked up if one says something
for i = 1, acks do
  if ARGV[ack_at + 6 * i - 2] ~= '' then
    hearers = hearers or cells_of({unpack(holds, under + 1, under + acks)}) or {}
    if not hearers[i] then refuse(commit_of(puts + under + i), NO_CELL, holds[under + i]) end
  end
end

local piece = puts + under + acks
local removed = column(remove_at, 2, removes)
local spots = removes > 0 and places(removed) or {}
for i = 1, removes do
  local place, due, note = unpack(spots[i])
  local tried = note and #note >= 30 and take('>I4', note, 3) > 0
  local must = ARGV[remove_at + 2 * i - 1]
  local untouched = place == PLACE_PENDING and not tried and due + 0 == must + 0
  if (must == '-1' and place ~= PLACE_DEAD) or (must + 0 > 0 and not untouched) then
    refuse(commit_of(piece + i), WRONG_STATE, removed[i])
  end
end

piece = piece + removes + cancels
local ids = column(add_at, 4, adds)
local stored = adds > 0 and redis.call('HMGET', DATA, unpack(ids)) or {}
local over
for i = 1, adds do
  if stored[i] then over = over or places(ids) end
end
for i = 1, adds do
  if stored[i] then
    local place = over[i][1]
    local same = sub(stored[i], 2, 9) == sub(ARGV[add_at + 4 * i - 2], 2, 9)
    if place == PLACE_PENDING or place == PLACE_RUNNING or (place == PLACE_NONE and not same) then refuse(commit_of(piece + i), CONFLICT, ids[i]) end
  end
end

if owner[4] then -- see life.TakesSealed
  local changes, makes, stays, gets, brings = {}, {}, {}, {}, {}
  for i = 1, puts do
    local c, kind, body = commit_of(i), byte(cells[i]), ARGV[put_at + 3 * i - 1] ~= ''
    if kind == CELL_TALLY then gets[c] = gets[c] or body
    elseif olds[i] then changes[c] = true
    elseif body then
      makes[c] = true
      stays[c] = stays[c] or kind == CELL_SCHEDULE or kind == CELL_WORKFLOW and not cells[i]:find('/', 1, true)
    end
  end
  for i = 1, adds do brings[commit_of(piece + i)] = true end
  for i = 1, keyed do brings[commit_of(keyed_piece + i)] = true end
  for i = 1, receives do
    local c = commit_of(keyed_piece + keyed + i)
    gets[c] = true
    brings[c] = brings[c] or ARGV[receive_at + 4 * i - 1] ~= '' -- what is refused
  end
  for c = 1, commits do
    if stays[c] or (gets[c] and (makes[c] or brings[c])) or (brings[c] and not changes[c]) then refuse(c, CLOSED) end
  end
end
if tells and commits > 1 then -- commits that do not fit are left out, with all behind them: what they send keeps its order
  local ending, groups = {}, {}
  local function ends(id, c)
    if not bad[c] then ending[#ending + 1], groups[#groups + 1] = id, c end
  end
  for i = 1, acks do ends(holds[under + i], commit_of(puts + under + i)) end
  for i = 1, removes do ends(removed[i], commit_of(puts + under + acks + i)) end
  for i = 1, adds do
    if stored[i] then ends(ids[i], commit_of(piece + i)) end
  end
  for c = fitting(ending, groups, commits) + 1, commits do
    if not bad[c] then
      refuse(c, LEFT_OUT)
      count = '0' -- the next script counts
    end
  end
end
if #odd == commits and count ~= '2' then return {us, seq, inbox, 0, odd} end

-- Every key is looked at before the first is changed.
redis.call('ZCARD', TASKS)
redis.call('HLEN', DATA)
redis.call('HLEN', PARTS)
if #holds + removes + cancels > 0 or over then
  redis.call('HLEN', RUNNING)
  redis.call('ZCARD', ORDER)
  places({''})
end
if adds > 0 then redis.call('HLEN', TRAITS) redis.call('ZCARD', LANES) redis.call('ZCARD', ORDER) end
if sends > 0 or drops > 0 then redis.call('XLEN', OUT) end
if named > 0 then
  redis.call('ZCARD', QUEUES)
  for i = 1, named do redis.call('XLEN', stream(i)) end
end
if receives > 0 then redis.call('HLEN', CELLS) end
if keyed > 0 then
  redis.call('HLEN', MARKS)
  redis.call('ZCARD', LOOKS)
  redis.call('ZCARD', ORDER)
  places({''})
end
local spoken
if adds + keyed > 0 then
  spoken = spoke((word(attributes)))
  if attributes ~= '' then
    redis.call('HLEN', ATTRS)
    redis.call('ZCARD', INDEX)
  end
end
local gone, gone_attrs = {}, {}
local function went(deleted, attrs)
  for i = 1, attrs and #deleted or 0 do gone[#gone + 1], gone_attrs[#gone_attrs + 1] = deleted[i], attrs[i] end
end

-- Holds that end, in groups of one retention.
if acks > 0 then
  local has_notes, has_traits = redis.call('HLEN', NOTES) > 0, redis.call('HLEN', TRAITS) > 0
  -- include finish_order.lua
  -- include finish.lua
  local groups = {}
  for i = 1, acks do
    local retention = ARGV[ack_at + 6 * i - 4]
    if not bad[commit_of(puts + under + i)] then
      groups[retention] = groups[retention] or {{}, {}, {}, {}}
      local group, result = groups[retention], ARGV[ack_at + 6 * i - 3]
      local n = #group[1] + 1
      group[1][n], group[2][n], group[3][n] = holds[under + i], records[under + i], result ~= '' and result or nil
      local say = ARGV[ack_at + 6 * i - 2]
      if say ~= '' then group[3][-n] = say end
      group[4][n] = ARGV[ack_at + 6 * i - 1]
    end
  end
  for retention, group in pairs(groups) do
    local attrs = finish(group[1], group[2], group[3], retention, group[4])
    if watched then
      for i, id in ipairs(group[1]) do tell_held(CHANGE_DONE, id, group[2][i], 0, 0, OUTCOME_ACKED) end
    end
    went(group[1], attrs)
  end
end

if removes > 0 then
  -- include traits.lua
  -- include delete_pending.lua
  -- include delete_dead.lua
  local deleted, where, dead, dead_where = {}, {}, {}, {}
  for i = 1, removes do
    local is_dead = ARGV[remove_at + 2 * i - 1] == '-1'
    if not bad[commit_of(puts + under + acks + i)] then
      if is_dead then dead[#dead + 1], dead_where[#dead_where + 1] = removed[i], spots[i]
      elseif spots[i][1] == PLACE_PENDING then deleted[#deleted + 1], where[#where + 1] = removed[i], spots[i] end
    end
  end
  went(deleted, delete_pending(deleted, where))
  went(dead, delete_dead(dead, dead_where))
end

if cancels > 0 then
  -- include cancelled.lua
  local asked, hset = column(cancel_at, 1, cancels), {}
  for i, old in ipairs(redis.call('HMGET', RUNNING, unpack(asked))) do
    if old and not bad[commit_of(puts + under + acks + removes + i)] then
      local record, again = cancelled(old)
      if record then
        hset[#hset + 1], hset[#hset + 2] = asked[i], record
        if watched and not again then tell_held(CHANGE_CANCEL_REQUESTED, asked[i], old) end
      end
    end
  end
  if #hset > 0 then redis.call('HSET', RUNNING, unpack(hset)) end
end

local pended = false
if adds > 0 then
  local zadd, hset, told_cells, replaced, new, dues, n = {}, {}, {}, {}, {}, {}, 0
  for i = 1, adds do
    if not bad[commit_of(piece + i)] then
      local from, id = add_at + 4 * i - 4, ids[i]
      local due, cell = ARGV[from + 1], ARGV[from + 3]
      if stored[i] then replaced[#replaced + 1] = id end
      new[i], dues[i] = PLACE_PENDING, due
      zadd[n + 1], zadd[n + 2], hset[n + 1], hset[n + 2] = due, id, id, ARGV[from + 2]
      n = n + 2
      if cell ~= '' then told_cells[#told_cells + 1], told_cells[#told_cells + 2] = id, cell end
      if watched then tell(CHANGE_ENQUEUED, id, 0, due, 1) end
    end
  end
  pended = n > 0
  if #replaced > 0 then
    local attrs = attrs_of(replaced)
    redis.call('ZREM', DLQ, unpack(replaced))
    redis.call('ZREM', DONE, unpack(replaced))
    redis.call('ZREM', KEPT, unpack(replaced))
    redis.call('HDEL', NOTES, unpack(replaced))
    redis.call('HDEL', HISTORY, unpack(replaced))
    redis.call('HDEL', TRAITS, unpack(replaced))
    if tells then forget_tells(replaced) end
    forget_attrs(replaced, attrs)
  end
  if pended then
    redis.call('ZADD', TASKS, unpack(zadd))
    redis.call('HSET', DATA, unpack(hset))
    if #told_cells > 0 then redis.call('HSET', TELLS, unpack(told_cells)) end
    if k > 0 then put_traits(8, k, ids, dues, new) end
    write_spoken(spoken)
    put_attrs(attributes, ids, new)
  end
end

local keyed_answers, not_made, left = {}, {}, {} -- and by commit which of its adds are refused, and not settled
if keyed > 0 then
  local add, mark_under, forget_keys, pends = (function() -- of its own, as a function has 200 locals at most
    -- include order_head.lua
    -- include keys.lua
    -- include edits.lua
    -- include keyed.lua
    return add_keyed, mark_of, forget, function() return keyed_pends end
  end)()
  local touched = {} -- see store.Keying
  local function touch(c, id)
    touched[c] = touched[c] or {}
    touched[c][id] = true
  end
  for i = 1, acks do touch(commit_of(puts + under + i), holds[under + i]) end
  for i = 1, removes do touch(commit_of(puts + under + acks + i), removed[i]) end
  for i = 1, cancels do touch(commit_of(puts + under + acks + removes + i), ARGV[cancel_at + i - 1]) end
  for i = 1, adds do touch(commit_of(piece + i), ids[i]) end
  for i = 1, keyed do
    local c = commit_of(keyed_piece + i)
    if not bad[c] then
      local from = keyed_at + 10 * i - 10
      local position, id, key, answer = ARGV[from] + 0, ARGV[from + 1], ARGV[from + 7], nil
      local mark, t = mark_under(key), touched[c] or {}
      if t[id] or t['\0' .. key] or (mark and t[mark.id]) then
        answer = {LEFT_OUT}
      else
        touch(c, id)
        touch(c, '\0' .. key)
        if mark then touch(c, mark.id) end
        answer = add(unpack(ARGV, from + 1, from + 9))
      end
      not_made[c], left[c] = not_made[c] or {}, left[c] or {}
      not_made[c][position] = answer[1] == TAKEN or answer[1] == CONFLICT
      left[c][position] = answer[1] == LEFT_OUT or answer[1] == CLOSED
      keyed_answers[#keyed_answers + 1] = {c, position, answer}
    end
  end
  pended = pended or pends()
  forget_keys(2 * keyed)
end

if not kept then redis.call('HSET', OWNER, 'in', 0, 'schema', 2) end
-- Receipts. Nodes of before know neither them nor queues.
if receives > 0 then
  local hset = {}
  for i = 1, receives do
    local c, from = commit_of(keyed_piece + keyed + i), receive_at + 4 * i - 4
    if not bad[c] then
      local numbers, refused = ARGV[from + 2], ARGV[from + 3]
      if left[c] then
        local settles, refuses = {}, {refused}
        for k = 1, #numbers / 8 do
          local n = sub(numbers, 8 * k - 7, 8 * k)
          if not left[c][k] then settles[#settles + 1] = n end
          if not_made[c][k] then refuses[#refuses + 1] = n end
        end
        numbers, refused = table.concat(settles) .. refused, table.concat(refuses)
      else
        numbers = numbers .. refused
      end
      hset[#hset + 1], hset[#hset + 2] = ARGV[from], taken(receipts[i], ARGV[from + 1], numbers, refused)
    end
  end
  if #hset > 0 then
    redis.call('HSET', CELLS, unpack(hset))
    redis.call('HSET', OWNER, 'schema', 3)
  end
end

-- Cells.
if puts > 0 then
  local hset, hdel = {[false] = {}, [true] = {}}, {[false] = {}, [true] = {}}
  local wakes, sleep, listed, unlisted, n, w = {}, {}, {}, {}, 0, 0
  for i = 1, puts do
    if not bad[commit_of(i)] then
      local id, old, new = cells[i], olds[i], ARGV[put_at + 3 * i - 1]
      local part = parts and is_part(id)
      local was, is = false, false -- in a list, as the set has it without the id
      local wake = 0
      if old and byte(old, 17) > 0 then was = sub(old, 17, 25 + byte(old, 17)) end
      if new ~= '' then
        local put = hset[part]
        local size = #put
        put[size + 1], put[size + 2] = id, old and pack('>i8', versions[i] + 1) .. sub(new, 9) or new
        wake = take('>i8', new, 9)
        if byte(new, 17) > 0 then is = sub(new, 17, 25 + byte(new, 17)) end
      elseif old then
        hdel[part][#hdel[part] + 1] = id
      end
      if wake ~= 0 then
        wakes[w + 1], wakes[w + 2] = wake, id
        w = w + 2
      elseif old and sub(old, 9, 16) ~= '\0\0\0\0\0\0\0\0' then
        sleep[#sleep + 1] = id
      end
      if was ~= is then
        if was then unlisted[#unlisted + 1] = was .. id end
        if is then listed[#listed + 1], listed[#listed + 2] = 0, is .. id end
      end
    end
  end
  for part, key in pairs({[false] = CELLS, [true] = PARTS}) do
    if #hset[part] > 0 then redis.call('HSET', key, unpack(hset[part])) end
    if #hdel[part] > 0 then redis.call('HDEL', key, unpack(hdel[part])) end
  end
  if w > 0 then redis.call('ZADD', WAKES, unpack(wakes)) end
  if #sleep > 0 then redis.call('ZREM', WAKES, unpack(sleep)) end
  if #unlisted > 0 then redis.call('ZREM', LISTS, unpack(unlisted)) end
  if #listed > 0 then redis.call('ZADD', LISTS, unpack(listed)) end
end

-- Boxes. What other shards count by, see relay, must not be given twice: a server that was set back
-- has an earlier number, and a later time.
piece = piece + adds
local out -- the number that the out-box got last, when it got one
local sent, queued, last_sent -- the number that a queue got last, and how many messages come and go
if named > 0 then
  local numbers = redis.call('HMGET', OWNER, 'sent', 'queued')
  sent, queued = tonumber(numbers[1] or 0), 0
  last_sent = sent
end
for i = 1, sends do
  if not bad[commit_of(piece + i)] then
    local parcel = ARGV[send_at + i - 1]
    if byte(parcel) == 49 then
      add_parcel(sub(parcel, 2))
    elseif byte(parcel) == 51 then
      local queue = take('>I2', parcel, 2)
      sent, queued = math.max(sent + 1, us, estimate), queued + 1
      redis.call('XADD', stream(queue), string.format('%.0f-0', sent), 'p', pack('>i8I4', now, 1) .. sub(parcel, 4))
      redis.call('ZADD', QUEUES, 0, names_of[queue])
    else
      out = math.max((out or tonumber(redis.call('HGET', OWNER, 'out') or 0)) + 1, us)
      redis.call('XADD', OUT, string.format('%.0f-0', out), 'p', pack('>i8I4', now, 1) .. sub(parcel, 2))
    end
  end
end
post()
if out then redis.call('HSET', OWNER, 'out', string.format('%.0f', out)) end
piece = piece + sends
local taken = 0
for i = 1, takes do
  if not bad[commit_of(piece + i)] then taken = math.max(taken, ARGV[take_at + i - 1] + 0) end
end
taken = math.min(taken, inbox)
if takes > 0 and taken > (tonumber(redis.call('HGET', OWNER, 'taken') or 0) or 0) then
  redis.call('HSET', OWNER, 'taken', string.format('%.0f', taken))
  redis.call('XTRIM', IN, 'MINID', string.format('%.0f-0', taken + 1))
end
piece = piece + takes
for i = 1, drops do
  if not bad[commit_of(piece + i)] then redis.call('XDEL', OUT, ARGV[drop_at + i - 1] .. '-0') end
end
for i = 1, finishes do
  if not bad[commit_of(keyed_piece + keyed + receives + i)] then
    local queue, gone_ids = ARGV[finish_at + 2 * i - 2] + 0, {}
    for id in string.gmatch(ARGV[finish_at + 2 * i - 1], '%S+') do gone_ids[#gone_ids + 1] = id .. '-0' end
    if #gone_ids > 0 then queued = queued - redis.call('XDEL', stream(queue), unpack(gone_ids)) end
    if redis.call('XLEN', stream(queue)) == 0 then
      redis.call('DEL', stream(queue))
      redis.call('ZREM', QUEUES, names_of[queue])
    end
  end
end
if named > 0 and (queued ~= 0 or sent ~= last_sent) then
  redis.call('HINCRBY', OWNER, 'queued', queued)
  redis.call('HSET', OWNER, 'sent', string.format('%.0f', sent), 'schema', 3)
end
-- include count.lua
if watched then told(gone, gone_attrs) end
return {us, seq, inbox, pended and 1 or 0, odd, keyed_answers}
