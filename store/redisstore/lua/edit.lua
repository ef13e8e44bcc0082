-- Changes pending tasks in place. The scripts that include it take, besides what
-- owner.lua and call.lua say, per task, no id twice: id, version that it must have
-- (0: any), due ms (empty: as it is; now: at once, unless it is due), the new
-- record (empty: as it is), and the traits of the new record. A new record says
-- itself that it is of the version after. The answer is
--
--   {us, seq, pended, versions, dues, traits, odd}; a task that is not odd was changed
--     versions  of the tasks as they are now, below 0 for those that moved, 0 when odd
--     dues      ms, of the tasks as they are now, false when odd
--     traits    of the tasks as they are now, or nothing when no task has or had any
--     odd       {position, status, place, detail, note, version}: 8 stale
--               (version: the one it has), 9 wrong state, or a record that cannot
--               be read, 10 not found
--
-- include status.lua
-- include places.lua
local ids = {}
for i = 2, #ARGV, 5 do ids[#ids + 1] = ARGV[i] end
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
local traits = traits_of(ids)
for i = 6, #ARGV, 5 do
  if ARGV[i] ~= '' and not traits then
    traits = {}
    for k = 1, #ids do traits[k] = false end
  end
end
local found, records = places(ids), redis.call('HMGET', KEYS[3], unpack(ids))

-- include edits.lua

local zadd, hset, versions, dues, odd = {}, {}, {}, {}, {}
local left, joined, put, bare, moved = {}, {}, {}, {}, {}
for i, p in ipairs(found) do
  local record, at = records[i], 5 * i - 3
  local want, due, new = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local status, count, from, to = OK
  if p[1] == 0 or (p[1] == 1 and not record) then
    status = NOT_FOUND
  elseif p[1] ~= 1 or #record < 9 or math.floor(string.byte(record) / 16) ~= 1 then
    status = WRONG_STATE
  else
    count, from, to = edits(record)
    if not count then
      status = WRONG_STATE
    elseif want ~= '0' and want + 0 ~= count + 1 then
      status = STALE
    elseif new ~= '' and string.sub(new, 2, 9) ~= string.sub(record, 2, 9) then
      status = STALE
    end
  end
  versions[i], dues[i] = 0, false
  if status ~= OK then
    local place, detail, note = unpack(p)
    odd[#odd + 1] = {i, status, place, detail, note, status == STALE and count + 1 or 0}
  else
    local was, is = traits and traits[i] or '', nil
    if new ~= '' then
      is = ARGV[at + 4]
    else
      is = was
      local version = string.byte(record)
      if to == from then version = version + 4 end
      new = string.char(version) .. string.sub(record, 2, from - 1) .. struct.pack('>i8', count + 1) .. string.sub(record, to)
    end
    if due == 'now' then due = p[2] + 0 > now and string.format('%.0f', now) or '' end
    hset[#hset + 1], hset[#hset + 2] = ids[i], new
    versions[i], dues[i] = count + 2, due ~= '' and due or p[2]
    if due ~= '' or is ~= was then
      versions[i] = -versions[i]
      zadd[#zadd + 1], zadd[#zadd + 2] = dues[i], ids[i]
      left[#left + 1] = lane_member(ids[i], p[2], was)
      local member = lane_member(ids[i], dues[i], is)
      if member then joined[#joined + 1], joined[#joined + 2] = 0, member end
      local key = order_key(was)
      if key then moved[#moved + 1] = {order_member(key, ids[i], p[2]), order_member(key, ids[i], dues[i])} end
    end
    if is ~= was then
      traits[i] = is ~= '' and is
      if is ~= '' then put[#put + 1], put[#put + 2] = ids[i], is else bare[#bare + 1] = ids[i] end
    end
  end
end
local count, pended = ARGV[1], #zadd > 0
if #hset > 0 then redis.call('HSET', KEYS[3], unpack(hset)) end
if pended then redis.call('ZADD', KEYS[2], unpack(zadd)) end
if #bare > 0 then redis.call('HDEL', KEYS[9], unpack(bare)) end
if #put > 0 then redis.call('HSET', KEYS[9], unpack(put)) end
if #left > 0 then redis.call('ZREM', KEYS[10], unpack(left)) end
if #joined > 0 then redis.call('ZADD', KEYS[10], unpack(joined)) end
for _, m in ipairs(moved) do -- what was held stands where it stood
  if redis.call('ZREM', ORDER, m[1]) == 1 then redis.call('ZADD', ORDER, 0, m[2]) end
end
-- include count.lua
return {us, seq, pended and 1 or 0, versions, dues, traits or {}, odd}
