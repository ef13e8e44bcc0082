-- Parcels for cells of the shard, and the tasks that tell one. In a shard in which there was
-- never a cell, and no task that tells one, the owner record has no field in, and nothing
-- looks at either. From the first on its schema is 2.
--   past(note) is what the note of a task says: its attempts so far, and the last error
--   cells_of(ids) looks up which cells tasks tell: per task the cell or false, or nil when
--     no task of the shard tells any or has a journal
--   cell_of(id, entry) is the cell that an entry of TELLS says, or false
--   add_parcel(parcel) notes a parcel
--   leave(cell, kind, id, reason, attempt, due, who, why, result, say) notes what the end of a
--     task leaves for its cell: a parcel, as parcel.go reads it; say is nil or false when nothing was said
--   leave_done(ids, records, notes, results) notes what tasks that are done leave: these are
--     their running records and notes, and results by position as in finish.lua
--   post() writes what was noted; it is last, once everything else is written
--   fitting(ids) is how many of the first of some tasks one script deletes: one at least, and no more when the names
--     of their journals have MOST_NAMES bytes together, as a journal is forgotten name by name; fitting(ids, groups, n) is
--     how many of the first of n groups, of which each task is in one
--   forgotten is how many bytes of names were forgotten
--   forget_tells(ids) is for tasks whose records are deleted; it returns how much there was
-- TELLS has the journals of tasks, too, see journal.lua: they are forgotten with what a task
-- tells, and when it is done.
local tells, past, cells_of, cell_of, leave, leave_done, add_parcel, post, forget_tells
local forgotten = 0
local function fitting(ids, _, n) return n or #ids end
if owner[8] then
  tells = redis.call('HLEN', TELLS) > 0
  redis.call('XLEN', IN)
  past = function(note)
    if not note or #note < 30 then return 0, '' end
    return struct.unpack('>I4', note, 3), string.sub(note, 31)
  end
  -- include journal.lua
  local journals, seen = {}, {} -- cells of tasks that have a journal, empty for none; which tasks were looked up
  cell_of = function(id, entry)
    seen[id] = true
    if not entry or string.byte(entry) ~= 0 then return entry end
    journals[id] = string.sub(entry, 6)
    return journals[id] ~= '' and journals[id]
  end
  cells_of = function(ids)
    if not tells or #ids == 0 then return nil end
    local cells = redis.call('HMGET', TELLS, unpack(ids))
    for k, id in ipairs(ids) do cells[k] = cell_of(id, cells[k]) end
    return cells
  end
  fitting = function(ids, groups, n)
    n = n or #ids
    if not cells_of(ids) then return n end
    local sizes, room = {}, MOST_NAMES
    for i, id in ipairs(ids) do
      if journals[id] then
        local group = groups and groups[i] or i
        sizes[group] = (sizes[group] or 0) + redis.call('HSTRLEN', TELLS, journal_of(id))
      end
    end
    for group = 1, n do
      room = room - (sizes[group] or 0)
      if room < 0 and group > 1 then return group - 1 end
    end
    return n
  end
  -- forget_journals deletes the journals of tasks that were looked up.
  local function forget_journals(ids)
    local had = 0
    for _, id in ipairs(ids) do
      local cell = journals[id]
      if cell then
        journals[id], had = nil, had + 1
        local fields = {journal_of(id)}
        local names = redis.call('HGET', TELLS, fields[1])
        forgotten = forgotten + #(names or '')
        each_name(names, function(name) fields[#fields + 1] = fields[1] .. name end)
        redis.call('HDEL', TELLS, id, unpack(fields))
        if cell ~= '' then redis.call('HSET', TELLS, id, cell) end
      end
    end
    return had
  end
  forget_tells = function(ids)
    if not tells or #ids == 0 then return 0 end
    local unseen = {}
    for _, id in ipairs(ids) do
      if not seen[id] then unseen[#unseen + 1] = id end
    end
    cells_of(unseen)
    return forget_journals(ids) + redis.call('HDEL', TELLS, unpack(ids))
  end
  local parcels = {}
  leave = function(cell, kind, id, reason, attempt, due, who, why, result, say)
    parcels[#parcels + 1] = struct.pack('>BI2', say and kind + 128 or kind, #cell) .. cell
      .. struct.pack('>BI4i8I2I2I4I4', reason, attempt, due, #id, #who, #why, #result) .. id .. who .. why .. result
      .. (say and struct.pack('>I4', #say) .. say or '')
  end
  leave_done = function(ids, records, notes, results)
    for k, cell in ipairs(cells_of(ids)) do
      if cell and #records[k] >= 30 then
        local attempt, length = struct.unpack('>I4I2', records[k], 25)
        local who, due = string.sub(records[k], 31, 30 + length), tonumber(string.sub(records[k], 31 + length)) or 0
        leave(cell, CHANGE_DONE, ids[k], 0, attempt, due, who, notes[k] and string.sub(notes[k], 31) or '', results[k] or '', results[-k])
      end
    end
    forget_journals(ids)
  end
  add_parcel = function(parcel) parcels[#parcels + 1] = parcel end
  local function write(first, last)
    inbox = redis.call('HINCRBY', OWNER, 'in', last - first + 1)
    redis.call('XADD', IN, string.format('%.0f-0', inbox), 'p', struct.pack('>i8I4', now, last - first + 1) .. table.concat(parcels, '', first, last))
  end
  post = function()
    local first, size = 1, 0
    for i, parcel in ipairs(parcels) do
      size = size + #parcel
      if size >= 1048576 or i == #parcels then -- one entry for a script, unless it would be large
        write(first, i)
        first, size = i + 1, 0
      end
    end
  end
end
