#!lua flags=allow-oom
-- sweep: repair tasks that are in no index, and what points to no task.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 1 when the records of the tasks can be read, 0 when they cannot,
--       empty when that is not known  4 and on: ids
--
-- returns -1 fenced, or {how many it repaired, tasks that are to be repaired once that is
-- known, the field indexed of the owner record, tasks that have no attributes in the hash}

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include places.lua
-- include log.lua
local ids = {unpack(ARGV, 4)}
if #ids == 0 then return {0, {}, '', {}} end
redis.call('HLEN', DATA)
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
-- include attrs.lua
-- include parcels.lua
local traits, attrs, cells = traits_of(ids), attrs_of(ids), tells and cells_of(ids)
local repaired, doubtful, bare = 0, {}, {}
local lost = {} -- unfinished tasks and dead letters whose record is gone

-- missing adds the members of a task to the index that are not there.
local function missing(id, packed)
  local zadd = {}
  members(zadd, id, packed, 0)
  return redis.call('ZADD', INDEX, unpack(zadd)) > 0 and 1 or 0
end

-- line_up puts an unfinished task of an ordering key where it belongs, unless it is
-- there, and returns 1 when it was not.
local function line_up(id, key, p)
  local first = order_member(key, id)
  if redis.call('ZSCORE', ORDER, first) then return 0 end
  if p[1] == PLACE_RUNNING or (p[3] and #p[3] >= 30 and struct.unpack('>I4', p[3], 3) > 0) then return redis.call('ZADD', ORDER, 0, first) end
  return redis.call('ZADD', ORDER, 0, order_member(key, id, p[2]))
end

for i, p in ipairs(places(ids)) do
  local id, place = ids[i], p[1]
  local broken = place == PLACE_RUNNING and #p[2] < 30
  local key = traits and order_key(traits[i])
  if redis.call('HEXISTS', DATA, id) == 0 and place > PLACE_NONE and place < PLACE_DONE then
    lost[#lost + 1] = {id, p, cells and cells[i]}
  elseif redis.call('HEXISTS', DATA, id) == 0 then
    local found = redis.call('ZREM', TASKS, id) + redis.call('HDEL', RUNNING, id) + redis.call('HDEL', NOTES, id)
      + redis.call('ZREM', DLQ, id) + redis.call('ZREM', DONE, id) + redis.call('ZREM', KEPT, id) + redis.call('HDEL', HISTORY, id) + redis.call('HDEL', TRAITS, id)
    if attrs and attrs[i] then
      forget_attrs({id}, {attrs[i]})
      found = found + 1
    end
    if cells then
      found = found + forget_tells({id})
      if cells[i] and place == PLACE_NONE then leave(cells[i], CHANGE_DELETED, id, 0, 0, 0, '', '', '') end
    end
    if found > 0 then repaired = repaired + 1 end
  elseif (place == PLACE_NONE or broken) and ARGV[3] == '' then
    doubtful[#doubtful + 1] = id
  elseif place == PLACE_NONE or broken then
    redis.call('HDEL', RUNNING, id)
    if ARGV[3] == '1' then
      redis.call('ZADD', TASKS, now, id)
      local member = traits and lane_member(id, now, traits[i])
      if member then redis.call('ZADD', LANES, 0, member) end
      if key then line_up(id, key, {PLACE_PENDING, now, p[3]}) end
      redis.call('HSET', OWNER, 'seq', seq + 1)
      if watched then tell(CHANGE_UPDATED, id, attempts_of(p[3]), now) end
    else
      redis.call('ZADD', DLQ, now, id)
      redis.call('HSET', NOTES, id, struct.pack('>BBI4i8', 1, REASON_CORRUPT, 0, now) .. string.rep('\0', 16))
      if cells and cells[i] then leave(cells[i], CHANGE_DEAD, id, REASON_CORRUPT, 0, now, '', '', '') end
      if watched then tell(CHANGE_DEAD, id, 0, 0, 0, REASON_CORRUPT) end
    end
    repaired = repaired + 1
  elseif place <= PLACE_RUNNING and traits then
    local member = place == PLACE_PENDING and lane_member(id, p[2], traits[i])
    if member then repaired = repaired + redis.call('ZADD', LANES, 0, member) end
    if key then repaired = repaired + line_up(id, key, p) end
  end
  if attrs and not attrs[i] then
    if doubtful[#doubtful] ~= id then bare[#bare + 1] = id end
  elseif attrs and redis.call('HEXISTS', DATA, id) == 1 then
    repaired = repaired + missing(id, attrs[i])
  end
end
for _, l in ipairs(lost) do
  local id, place, note = l[1], l[2][1], l[2][3]
  redis.call('ZREM', TASKS, id)
  redis.call('HDEL', RUNNING, id)
  redis.call('HDEL', TRAITS, id)
  redis.call('HSET', DATA, id, '') -- what cannot be read is a dead letter
  redis.call('HSET', NOTES, id, struct.pack('>BBI4i8', 1, REASON_CORRUPT, 0, place == PLACE_PENDING and l[2][2] or 0) .. string.rep('\0', 16))
  if place < PLACE_DEAD then
    redis.call('ZADD', DLQ, now, id)
    if l[3] then
      local attempt, why = past(note)
      leave(l[3], CHANGE_DEAD, id, REASON_CORRUPT, attempt, place == PLACE_PENDING and l[2][2] or 0, '', why, '')
    end
    if watched then tell(CHANGE_DEAD, id, attempts_of(note), 0, 0, REASON_CORRUPT) end
  end
  repaired = repaired + 1
end
if tells then post() end
if watched then told() end
return {repaired, doubtful, owner[5] or '', bare}
