#!lua
-- checkpoint: add entries to the journals of tasks that are held.
--
-- KEYS  those of a shard
-- ARGV  per task, no id twice: id, token, name, 1 if it is encrypted, what it returned
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, odd}; a task that is not odd has the entry now
--   odd  {position, status}: already, journal full, stale, wrong state, not found

-- include owner.lua
-- include call.lua
-- include journal.lua
local ids = {}
for i = 1, #ARGV, 5 do ids[#ids + 1] = ARGV[i] end
local records = redis.call('HMGET', RUNNING, unpack(ids))
local entries = redis.call('HMGET', TELLS, unpack(ids))
local hset, odd, lost = {}, {}, {}

-- write notes an entry for the journal of a task, and returns what becomes of it.
local function write(id, entry, name, encrypted, value)
  local own, cell, bytes, names = journal_of(id), entry or '', 0, ''
  if entry and string.byte(entry) == 0 then
    bytes, cell, names = struct.unpack('>I4', entry, 2), string.sub(entry, 6), redis.call('HGET', TELLS, own) or ''
  end
  bytes = bytes + #name + #value - (encrypted and ENCRYPTED_BYTES or 0)
  if names ~= '' and redis.call('HEXISTS', TELLS, own .. name) == 1 then return ALREADY end
  -- A name takes two bytes at least: most journals are not full whatever they have.
  if bytes > JOURNAL_BYTES or #names >= 2 * JOURNAL_NAMES and count_names(names) >= JOURNAL_NAMES then return JOURNAL_FULL end
  local at = #hset
  hset[at + 1], hset[at + 2] = id, struct.pack('>BI4', 0, bytes) .. cell
  hset[at + 3], hset[at + 4] = own, names .. string.char(#name) .. name
  local kept = struct.pack('>i8', now)
  if encrypted then kept = '\128' .. string.sub(kept, 2) end
  hset[at + 5], hset[at + 6] = own .. name, kept .. value
  return OK
end

for i, id in ipairs(ids) do
  local record = records[i]
  if not record or #record < 30 or string.sub(record, 1, 16) ~= ARGV[5 * i - 3] then
    lost[#lost + 1] = id
    odd[#odd + 1] = {i, false}
  else
    local status = write(id, entries[i], ARGV[5 * i - 2], ARGV[5 * i - 1] == '1', ARGV[5 * i])
    if status ~= OK then odd[#odd + 1] = {i, status} end
  end
end
if #lost > 0 then
  -- include places.lua
  local found, k = places(lost), 0
  for _, o in ipairs(odd) do
    if not o[2] then
      k = k + 1
      local place = found[k][1]
      o[2] = place == PLACE_NONE and NOT_FOUND or place == PLACE_RUNNING and STALE or WRONG_STATE
    end
  end
end
if #hset > 0 then
  if not owner[8] then redis.call('HSET', OWNER, 'in', 0, 'schema', 2) end
  redis.call('HSET', TELLS, unpack(hset))
end
return {us, seq, inbox, odd}
