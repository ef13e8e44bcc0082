#!lua flags=allow-oom
-- sweep: repair tasks that are in no index, and what points to no task.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
--       11 history  12 marks  13 looks  14 attrs  15 index  16 log  17 order
-- ARGV  1 epoch  2 nonce  3 1 when the records of the tasks can be read  4 and on: ids
--
-- returns how many it repaired, or -1 fenced, or {how many, the field indexed of the owner
-- record, ids of tasks that have no attributes in the hash}

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
-- include places.lua
-- include log.lua
local ids = {unpack(ARGV, 4)}
if #ids == 0 then return 0 end
redis.call('HLEN', KEYS[3])
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
-- include attrs.lua
local traits, attrs = traits_of(ids), attrs_of(ids)
local repaired, bare = 0, {}

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
  if p[1] == 2 or (p[3] and #p[3] >= 30 and struct.unpack('>I4', p[3], 3) > 0) then return redis.call('ZADD', ORDER, 0, first) end
  return redis.call('ZADD', ORDER, 0, order_member(key, id, p[2]))
end

for i, p in ipairs(places(ids)) do
  local id, place = ids[i], p[1]
  local broken = place == 2 and #p[2] < 30
  local key = traits and order_key(traits[i])
  if redis.call('HEXISTS', KEYS[3], id) == 0 then
    local found = redis.call('ZREM', KEYS[2], id) + redis.call('HDEL', KEYS[4], id) + redis.call('HDEL', KEYS[5], id)
      + redis.call('ZREM', KEYS[6], id) + redis.call('ZREM', KEYS[7], id) + redis.call('ZREM', KEYS[8], id) + redis.call('HDEL', KEYS[11], id) + redis.call('HDEL', KEYS[9], id)
    if attrs and attrs[i] then
      forget_attrs({id}, {attrs[i]})
      found = found + 1
    end
    if found > 0 then repaired = repaired + 1 end
  elseif place == 0 or broken then
    redis.call('HDEL', KEYS[4], id)
    if ARGV[3] == '1' then
      redis.call('ZADD', KEYS[2], now, id)
      local member = traits and lane_member(id, now, traits[i])
      if member then redis.call('ZADD', KEYS[10], 0, member) end
      if key then line_up(id, key, {1, now, p[3]}) end
      redis.call('HSET', KEYS[1], 'seq', seq + 1)
      if watched then tell(UPDATED, id, attempts_of(p[3]), now) end
    else
      redis.call('ZADD', KEYS[6], now, id)
      redis.call('HSET', KEYS[5], id, struct.pack('>BBI4i8', 1, 4, 0, now) .. string.rep('\0', 16))
      if watched then tell(DEAD, id, 0, 0, 0, 4) end
    end
    repaired = repaired + 1
  elseif place <= 2 and traits then
    local member = place == 1 and lane_member(id, p[2], traits[i])
    if member then repaired = repaired + redis.call('ZADD', KEYS[10], 0, member) end
    if key then repaired = repaired + line_up(id, key, p) end
  end
  if attrs and not attrs[i] then
    bare[#bare + 1] = id
  elseif attrs and redis.call('HEXISTS', KEYS[3], id) == 1 then
    repaired = repaired + missing(id, attrs[i])
  end
end
if watched then told() end
if #bare > 0 then return {repaired, owner[5], unpack(bare)} end
return repaired
