#!lua
-- add: insert tasks that are absent; leave live ones, replace done and dead ones.
--
-- KEYS  those of a shard
-- ARGV  1 count  2 attributes (see put_attrs.lua)  3 cells that tasks tell (see put_tells.lua)
--       4 number of tasks with traits, and for each its position and traits;
--       then per task, no id twice: id, due ms, record
--       and last the life (see admit.lua) and the moment (see call.lua)
--
-- returns {us, seq, inbox, pended, odd}, or -2 sealed; a task that is not odd was absent and is pending now
--   odd   {position, status, place, detail, note} per task whose id was known:
--         status added (place 3 dead or 4 done: replaced; 0: it was in no
--         index), duplicate, conflict (place 0 to 2: of the stored task), left out (see parcels.lua)

-- include owner.lua
-- include call.lua
-- include log.lua
if owner[4] then return -2 end
-- include admit.lua
-- include attrs.lua
-- include put_attrs.lua
-- include parcels.lua
local count, attributes, told_cells, k = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local ids, dues, zadd, hset = {}, {}, {}, {}
local n, first = 0, 5 + 2 * k
for i = first, #ARGV, 3 do
  local id = ARGV[i]
  n = n + 1
  ids[n], dues[n] = id, ARGV[i + 1]
  zadd[2 * n - 1], zadd[2 * n] = ARGV[i + 1], id
  hset[2 * n - 1], hset[2 * n] = id, ARGV[i + 2]
end
local stored = redis.call('HMGET', DATA, unpack(ids))
local known = false
for i = 1, n do
  if stored[i] then known = true end
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
local odd, new = {}, nil
if known then
  -- include places.lua
  local found = places(ids)
  zadd, hset, new = {}, {}, {}
  -- include replaced.lua
  local over, fits = replaced(ids, stored, found)
  for i, id in ipairs(ids) do
    local place, record = found[i][1], ARGV[first + 3 * i - 1]
    local status = ADDED
    if stored[i] then
      local same = string.sub(stored[i], 2, 9) == string.sub(record, 2, 9)
      if place >= PLACE_DEAD then
        if i > fits then status, count = LEFT_OUT, '0' end -- the next script counts
      elseif place > PLACE_NONE or not same then
        status = same and DUPLICATE or CONFLICT
      end
      odd[#odd + 1] = {i, status, unpack(found[i])}
    end
    if status == ADDED then
      new[i] = PLACE_PENDING
      zadd[#zadd + 1], zadd[#zadd + 2] = dues[i], id
      hset[#hset + 1], hset[#hset + 2] = id, record
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
end
local pended = #zadd > 0
if pended then
  redis.call('ZADD', TASKS, unpack(zadd))
  redis.call('HSET', DATA, unpack(hset))
  if k > 0 then
    -- include lane_member.lua
    -- include order_key.lua
    -- include put_traits.lua
    put_traits(5, k, ids, dues, new)
  end
  write_spoken(spoken)
  put_attrs(attributes, ids, new)
  -- include put_tells.lua
end
-- include count.lua
if watched and pended then
  for i = 1, n do
    if not new or new[i] then tell(CHANGE_ENQUEUED, ids[i], 0, dues[i], 1) end
  end
  told()
end
return {us, seq, inbox, pended and 1 or 0, odd}
