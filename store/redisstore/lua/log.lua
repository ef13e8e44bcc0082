-- What a script does to tasks is told to the shard's log, when it has one: watched then
-- is the retention in ms, a colon, and how many changes are kept at least. The layout is
-- that of store/record.
--   tell(kind, id, attempt, due, version, reason, outcome, worker, attrs) notes a change,
--   tell_held(kind, id, record, ...) one of a task whose running record that is, and
--   told(gone, attrs) writes what was noted, as one entry under the position of its last
--     change, with the indexed attributes of the tasks: those of gone are attrs, as
--     attrs_of found them, and those of others what they have now.
-- Told is last, once everything else is written.
local watched = owner[6]
local tell, tell_held, told, worker_of, attempts_of
if watched then
  local pack, take, sub, byte = struct.pack, struct.unpack, string.sub, string.byte
  redis.call('XLEN', LOG)
  if owner[5] then redis.call('HLEN', ATTRS) end
  local changes, ids, attributes, n = {}, {}, {}, 0 -- by position
  tell = function(kind, id, attempt, due, version, reason, outcome, worker, attrs)
    worker = worker or ''
    n = n + 1
    changes[n] = pack('>BBBI4I4i8I2I2', kind, reason or 0, outcome or 0, attempt, version or 0, due or 0, #id, #worker) .. id .. worker
    ids[n], attributes[n] = id, attrs or false
  end
  worker_of = function(who) -- see running.lua
    local mark = byte(who, -1)
    if (mark ~= MARK_HELD and mark ~= MARK_CANCELLED) or #who < 10 then return who end
    return sub(who, 1, -11 - byte(who, -10))
  end
  attempts_of = function(note)
    if not note or #note < 30 then return 0 end
    return (take('>I4', note, 3))
  end
  tell_held = function(kind, id, record, version, reason, outcome)
    if #record < 30 then return end
    local attempt, length = take('>I4I2', record, 25)
    local due = kind == CHANGE_HELD and tonumber(sub(record, 31 + length)) or 0
    tell(kind, id, attempt, due, version, reason, outcome, worker_of(sub(record, 31, 30 + length)))
  end
  -- look_up finds the attributes that nobody has said, and adds them to the changes.
  local function look_up(gone, attrs)
    local known = {}
    for i = 1, attrs and #gone or 0 do known[gone[i]] = attrs[i] or '' end
    for first = 1, n, 4000 do
      local now = redis.call('HMGET', ATTRS, unpack(ids, first, math.min(first + 3999, n)))
      for i = 1, #now do
        local k = first + i - 1
        local packed = attributes[k] or known[ids[k]] or now[i] or ''
        changes[k] = changes[k] .. pack('>I2', #packed) .. packed
      end
    end
  end
  told = function(gone, attrs)
    if n == 0 then return end
    local none = '\0\0' -- length of the attributes
    if owner[5] then
      look_up(gone, attrs)
      none = ''
    end
    local last = redis.call('HINCRBY', OWNER, 'logged', n)
    local oldest = math.max(0, last - string.match(watched, ':(%d+)') + 1)
    redis.call('XADD', LOG, 'MINID', string.format('%.0f', oldest), string.format('%.0f-0', last), 'c',
      pack('>i8I4', us, n) .. table.concat(changes, none) .. none)
  end
end
