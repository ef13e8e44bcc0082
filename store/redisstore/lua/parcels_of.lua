#!lua flags=no-writes
-- parcels_of: what is in a box behind a number.
--
-- KEYS  owner, box
-- ARGV  1 number  2 most parcels  3 1 for the in-box, of which some may be taken
--
-- returns {number up to which there is nothing, entries}; entries: the stream's, until there are
--   so many parcels in them or they fill the answer

local after, limit, room, entries = tonumber(ARGV[1]), tonumber(ARGV[2]), MAX_BODIES, {}
if ARGV[3] == '1' then after = math.max(after, tonumber(redis.call('HGET', OWNER, 'taken') or 0)) end
local from, page, some = string.format('%.0f', after + 1), 1, nil
repeat
  some = redis.call('XRANGE', BOX, from, '+', 'COUNT', page)
  for _, entry in ipairs(some) do
    local packed = entry[2][2]
    local count = #packed >= 12 and struct.unpack('>I4', packed, 9) or 0
    limit = limit - math.min(count, string.match(entry[1], '%d+') - after)
    room = room - #packed
    entries[#entries + 1] = entry
    from = '(' .. entry[1]
    if limit <= 0 or room <= 0 then break end
  end
  local over = #some < page or limit <= 0 or room <= 0
  page = math.min(2 * page, 64)
until over
return {after, entries}
