-- What a script does to tasks is told to the shard's log, when it has one: watched then
-- is the retention in ms, a colon, and how many changes are kept at least. The layout is
-- that of store/record.
--   tell(kind, id, attempt, due, version, reason, outcome, worker) notes a change,
--   tell_held(kind, id, record, ...) one of a task whose running record that is, and
--   told() writes what was noted, as one entry under the position of its last change.
-- Told is last, once everything else is written.
local watched = owner[5]
local ENQUEUED, UPDATED, HOLDING, RELEASED, RETRYING, DONE, DEAD, DELETED, REQUEUED, CANCEL = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local tell, tell_held, told, worker_of, attempts_of
if watched then
  redis.call('XLEN', KEYS[14])
  local changes = {}
  tell = function(kind, id, attempt, due, version, reason, outcome, worker)
    worker = worker or ''
    changes[#changes + 1] = struct.pack('>BBBI4I4i8I2I2', kind, reason or 0, outcome or 0, attempt, version or 0, due or 0, #id, #worker) .. id .. worker
  end
  worker_of = function(who) -- see running.lua
    local mark = string.byte(who, -1)
    if (mark ~= 254 and mark ~= 255) or #who < 10 then return who end
    return string.sub(who, 1, -11 - string.byte(who, -10))
  end
  attempts_of = function(note)
    if not note or #note < 30 then return 0 end
    return (struct.unpack('>I4', note, 3))
  end
  tell_held = function(kind, id, record, version, reason, outcome)
    if #record < 30 then return end
    local attempt, length = struct.unpack('>I4I2', record, 25)
    local due = kind == HOLDING and tonumber(string.sub(record, 31 + length)) or 0
    tell(kind, id, attempt, due, version, reason, outcome, worker_of(string.sub(record, 31, 30 + length)))
  end
  told = function()
    if #changes == 0 then return end
    local last = redis.call('HINCRBY', KEYS[1], 'logged', #changes)
    local oldest = math.max(0, last - string.match(watched, ':(%d+)') + 1)
    redis.call('XADD', KEYS[14], 'MINID', string.format('%.0f', oldest), string.format('%.0f-0', last), 'c',
      struct.pack('>i8I4', us, #changes) .. table.concat(changes))
  end
end
