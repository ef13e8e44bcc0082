-- Changes pending tasks in place. The scripts that include it take, besides what
-- owner.lua and call.lua say, the set of attributes that are indexed, and per task, no id twice: id, version that it must have
-- (0: any), due ms (empty: as it is; now: at once, unless it is due), the new
-- record (empty: as it is), and its traits and packed attributes. A new record says
-- itself that it is of the version after. The answer is
--
--   {us, seq, inbox, pended, versions, dues, traits, odd}; a task that is not odd was changed
--     versions  of the tasks as they are now, below 0 for those that moved, 0 when odd
--     dues      ms, of the tasks as they are now, false when odd
--     traits    of the tasks as they are now, or nothing when no task has or had any
--     odd       {position, status, place, detail, note, version}: stale
--               (version: the one it has), wrong state, or a record that cannot
--               be read, not found, expired: it would be due at or past its expiry
--
-- include places.lua
local ids = {}
for i = 3, #ARGV, 6 do ids[#ids + 1] = ARGV[i] end
-- include lane_member.lua
-- include order_key.lua
-- include traits.lua
-- include attrs.lua
-- include index_state.lua
local traits = traits_of(ids)
for i = 7, #ARGV, 6 do
  if ARGV[i] ~= '' and not traits then
    traits = {}
    for k = 1, #ids do traits[k] = false end
  end
end
local found, records = places(ids), redis.call('HMGET', DATA, unpack(ids))

-- include edits.lua
-- include expiry.lua
-- include log.lua

local zadd, hset, versions, dues, odd = {}, {}, {}, {}, {}
local left, joined, put, bare, moved = {}, {}, {}, {}, {}
local spoken, attrs, attrs_put, attrs_bare, entries, no_entries = nil, attrs_of(ids), {}, {}, {}, {}
if ARGV[2] ~= '' then
  redis.call('HLEN', ATTRS)
  redis.call('ZCARD', INDEX)
end
for i, p in ipairs(found) do
  local record, at = records[i], 6 * i - 3
  local want, due, new = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local status, count, from, to = OK
  if p[1] == PLACE_NONE or (p[1] == PLACE_PENDING and not record) then
    status = NOT_FOUND
  elseif p[1] ~= PLACE_PENDING or #record < 9 or math.floor(string.byte(record) / 16) ~= 1 then
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
  if status == OK then
    if due == 'now' then due = p[2] + 0 > now and string.format('%.0f', now) or '' end
    local was, expires = expiry(record), expiry(new ~= '' and new or record)
    if expires ~= 0 and (due ~= '' or expires ~= was) and expires <= (due ~= '' and due or p[2]) + 0 then status = EXPIRED end
  end
  versions[i], dues[i] = 0, false
  if status ~= OK then
    local place, detail, note = unpack(p)
    odd[#odd + 1] = {i, status, place, detail, note, status == STALE and count + 1 or 0}
  else
    local was, is = traits and traits[i] or '', nil
    if new ~= '' then
      is = ARGV[at + 4]
      spoken = spoken or spoke(ARGV[2])
      local had, has = attrs and attrs[i] or '', ARGV[at + 5]
      if had ~= has then
        members(no_entries, ids[i], had)
        members(entries, ids[i], has, 0)
        if has ~= '' then attrs_put[#attrs_put + 1], attrs_put[#attrs_put + 2] = ids[i], has else attrs_bare[#attrs_bare + 1] = ids[i] end
      end
    else
      is = was
      local version = string.byte(record)
      if to == from then version = version + 4 end
      new = string.char(version) .. string.sub(record, 2, from - 1) .. struct.pack('>i8', count + 1) .. string.sub(record, to)
    end
    hset[#hset + 1], hset[#hset + 2] = ids[i], new
    versions[i], dues[i] = count + 2, due ~= '' and due or p[2]
    if watched then tell(CHANGE_UPDATED, ids[i], attempts_of(p[3]), dues[i], count + 2) end
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
if #hset > 0 then redis.call('HSET', DATA, unpack(hset)) end
if pended then redis.call('ZADD', TASKS, unpack(zadd)) end
if #bare > 0 then redis.call('HDEL', TRAITS, unpack(bare)) end
if #put > 0 then redis.call('HSET', TRAITS, unpack(put)) end
if #left > 0 then redis.call('ZREM', LANES, unpack(left)) end
if #joined > 0 then redis.call('ZADD', LANES, unpack(joined)) end
write_spoken(spoken)
in_parts('HDEL', ATTRS, attrs_bare)
in_parts('HSET', ATTRS, attrs_put)
in_parts('ZREM', INDEX, no_entries)
in_parts('ZADD', INDEX, entries)
for _, m in ipairs(moved) do -- what was held stands where it stood
  if redis.call('ZREM', ORDER, m[1]) == 1 then redis.call('ZADD', ORDER, 0, m[2]) end
end
-- include count.lua
if watched then told() end
return {us, seq, inbox, pended and 1 or 0, versions, dues, traits or {}, odd}
