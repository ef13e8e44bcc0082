-- mark_of reads what stands under an idempotency key: the end of its window (0: while
-- its task lives), due ms, the id of the task, and those of the requests before it and
-- that replaced it (life.Requests); nil when nothing does. The caller included places.lua.
local function mark_of(key)
  local mark = redis.call('HGET', MARKS, key)
  if not mark or #mark < 17 then return nil end
  local till, due, size = struct.unpack('>i8i8B', mark)
  return {till = till, due = due, id = string.sub(mark, 18, 17 + size), past = string.sub(mark, 18 + size)}
end

-- was_past is life.Requests.Has.
local function was_past(past, id) return string.find('\0' .. past .. '\0', '\0' .. id .. '\0', 1, true) ~= nil end

-- one_more is life.Requests.Add.
local function one_more(past, id)
  if past == '' then return id end
  local _, more = string.gsub(past, '%z', '')
  if more >= KEPT_REQUESTS - 1 then past = string.sub(past, string.find(past, '\0', 1, true) + 1) end
  return past .. '\0' .. id
end

-- is_taken says whether the key of a mark is, and where its task lies.
local function is_taken(mark)
  local place = places({mark.id})[1]
  if mark.till ~= 0 then return mark.till > now, place end
  return place[1] == PLACE_PENDING or place[1] == PLACE_RUNNING, place
end

-- rest is store.KeyLook.
local function rest(due)
  local pause = due > now and due - now + 10000 or now - due
  return now + math.max(10000, math.min(pause, 3600000))
end

-- forget looks at up to so many keys whose time has come, and forgets the free ones.
local function forget(most)
  local keys = redis.call('ZRANGE', LOOKS, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
  for _, key in ipairs(keys) do
    local mark = mark_of(key)
    if mark and is_taken(mark) then
      redis.call('ZADD', LOOKS, rest(mark.due), key)
    else
      redis.call('HDEL', MARKS, key)
      redis.call('ZREM', LOOKS, key)
    end
  end
  return #keys
end
