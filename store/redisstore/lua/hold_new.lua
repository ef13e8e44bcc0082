#!lua
-- hold_new: insert tasks that are absent, and hold those that are due.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 count  4 number of runs r, then r times: number of tasks,
--       visibility ms, worker and node (see running.lua); then the tokens, 16 bytes
--       each; then attributes (see put_attrs.lua); then cells that tasks tell (see
--       put_tells.lua); then the number of tasks with
--       traits, and for each its position and traits; then per task, no id twice: id, due ms, record
--       and last the life (see admit.lua) and the moment (see call.lua)
--
-- returns {us, seq, inbox, pended, odd}, -1 fenced, or -2 sealed; a task that is not odd was absent and
--   is held at its first attempt for the visibility of its run
--   odd  {position, status, place, detail, note}: added, pending because not
--        due, expired, or with an ordering key; held in the place of a dead or done one; duplicate,
--        conflict; left out (see parcels.lua); place, detail and note of what was there before

-- include owner.lua
-- include call.lua
-- include log.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
if owner[4] then return -2 end
-- include admit.lua
-- include attrs.lua
-- include put_attrs.lua
-- include parcels.lua
local sub, byte = string.sub, string.byte
local count, last = ARGV[3], 3 * ARGV[4] + 4
local tokens, attributes, told_cells, k = ARGV[last + 1], ARGV[last + 2], ARGV[last + 3], tonumber(ARGV[last + 4])
local at = last + 4 + 2 * k
local n = (#ARGV - at) / 3
local ids, dues = {}, {}
for i = 1, n do ids[i], dues[i] = ARGV[at + 3 * i - 2], ARGV[at + 3 * i - 1] end
local stored = redis.call('HMGET', DATA, unpack(ids))

-- include running.lua
-- include lane_member.lua
-- include order_key.lua
-- include put_traits.lua
local ordered = {}
for j = last + 5, at, 2 do
  if order_key(ARGV[j + 1]) then ordered[tonumber(ARGV[j])] = true end
end
-- What is as expected: absent and due, without expiry and ordering key.
local hset, running, odd = {}, {}, {}
local i = 0
for run = 5, last, 3 do
  local who = ARGV[run + 2] .. started
  local middle = struct.pack('>i8I4I2', soon + ARGV[run + 1], 1, #who) .. who
  for k = 1, ARGV[run] do
    i = i + 1
    local id, due, record = ids[i], ARGV[at + 3 * i - 1], ARGV[at + 3 * i]
    if stored[i] or due + 0 > now or byte(record) % 2 == 1 or ordered[i] then odd[#odd + 1] = {i} end
    hset[2 * i - 1], hset[2 * i] = id, record
    running[2 * i - 1], running[2 * i] = id, sub(tokens, 16 * i - 15, 16 * i) .. middle .. due
  end
end
if k > 0 then
  redis.call('HLEN', TRAITS)
  redis.call('ZCARD', LANES)
end
if told_cells ~= '' then redis.call('HLEN', TELLS) end
local spoken = spoke((word(attributes)))
if attributes ~= '' then
  redis.call('HLEN', ATTRS)
  redis.call('ZCARD', INDEX)
end
if #odd == 0 and count ~= '2' then
  redis.call('HSET', RUNNING, unpack(running))
  redis.call('HSET', DATA, unpack(hset))
  if k > 0 then
    local all = {}
    for i = 1, n do all[i] = PLACE_RUNNING end
    put_traits(last + 5, k, ids, dues, all)
  end
  write_spoken(spoken)
  put_attrs(attributes, ids)
  local new
  -- include put_tells.lua
  if watched then
    for i = 1, n do
      tell(CHANGE_ENQUEUED, ids[i], 0, dues[i], 1)
      tell_held(CHANGE_HELD, ids[i], running[2 * i], 1)
    end
    told()
  end
  return {us, seq, inbox, 0, odd}
end
-- include places.lua
local found = places(ids)
-- include replaced.lua
local over, fits = replaced(ids, stored, found)
local keep, hold, zadd, new = {}, {}, {}, {}
local next = 1
for i = 1, n do
  local id, due, record = ids[i], dues[i], ARGV[at + 3 * i]
  local place, status = found[i][1], HELD
  if stored[i] then
    local same = sub(stored[i], 2, 9) == sub(record, 2, 9)
    if place >= PLACE_DEAD then
      if i > fits then status, count = LEFT_OUT, '0' end -- the next script counts
    elseif place > PLACE_NONE or not same then
      status = same and DUPLICATE or CONFLICT
    end
  end
  if status == HELD then
    local expires = byte(record) % 2 == 1 and struct.unpack('>i8', record, 10)
    keep[#keep + 1], keep[#keep + 2] = id, record
    if due + 0 > now or (expires and expires <= now) or ordered[i] then
      status, new[i] = ADDED, PLACE_PENDING
      zadd[#zadd + 1], zadd[#zadd + 2] = due, id
    else
      new[i] = PLACE_RUNNING
      hold[#hold + 1], hold[#hold + 2] = id, running[2 * i]
    end
  end
  if odd[next] and odd[next][1] == i then
    odd[next] = {i, status, unpack(found[i])}
    next = next + 1
  end
end
if #over > 0 then
  local attrs = attrs_of(over)
  redis.call('ZREM', DLQ, unpack(over))
  redis.call('ZREM', DONE, unpack(over))
  redis.call('ZREM', KEPT, unpack(over))
  redis.call('HDEL', NOTES, unpack(over))
  redis.call('HDEL', HISTORY, unpack(over))
  redis.call('HDEL', TRAITS, unpack(over))
  if tells then forget_tells(over) end
  forget_attrs(over, attrs)
end
if #keep > 0 then redis.call('HSET', DATA, unpack(keep)) end
if #hold > 0 then redis.call('HSET', RUNNING, unpack(hold)) end
local pended = #zadd > 0
if pended then redis.call('ZADD', TASKS, unpack(zadd)) end
if k > 0 then put_traits(last + 5, k, ids, dues, new) end
if #keep > 0 then write_spoken(spoken) end
put_attrs(attributes, ids, new)
-- include put_tells.lua
-- include count.lua
if watched then
  for i = 1, n do
    if new[i] then tell(CHANGE_ENQUEUED, ids[i], 0, dues[i], 1) end
    if new[i] == PLACE_RUNNING then tell_held(CHANGE_HELD, ids[i], running[2 * i], 1) end
  end
  told()
end
return {us, seq, inbox, pended and 1 or 0, odd}
