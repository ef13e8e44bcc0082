#!lua flags=no-writes
-- lane_window: pending tasks of one lane behind a position, up to a due time.
--
-- KEYS  owner, lanes, traits
-- ARGV  1 lane  2 due ms and 3 id of the position, both empty for the start
--       4 last due ms  5 most entries
--
-- returns {us, seq, inbox, entries: id, due, id, due, ..., traits}

-- include owner.lua
local lane = ARGV[1]
local function at(due) return lane .. struct.pack('>i8', math.max(0, due + 0)) end
local first = '[' .. lane
if ARGV[2] ~= '' then first = '(' .. at(ARGV[2]) .. ARGV[3] end
if ARGV[4] + 0 < 0 then return {us, seq, inbox, {}, {}} end
local members = redis.call('ZRANGE', LANES, first, '(' .. at(ARGV[4] + 1), 'BYLEX', 'LIMIT', 0, ARGV[5])
if #members == 0 then return {us, seq, inbox, {}, {}} end
local flat, ids = {}, {}
for i, member in ipairs(members) do
  local due = struct.unpack('>i8', member, #lane + 1)
  ids[i] = string.sub(member, #lane + 9)
  flat[2 * i - 1], flat[2 * i] = ids[i], string.format('%.0f', due)
end
return {us, seq, inbox, flat, redis.call('HMGET', TRAITS, unpack(ids))}
