#!lua flags=no-writes
-- messages: a page of a queue.
--
-- KEYS  queue
-- ARGV  1 number  2 most messages  3 most bytes
--
-- returns {first entry's id or false, entries behind the number, 1 when there are more}

local after, limit, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local first = redis.call('XRANGE', QUEUE, '-', '+', 'COUNT', 1)[1]
if not first then return {false, {}, 0} end
local from, page, entries, more, some = string.format('%.0f', after + 1), 4, {}, 0, nil
repeat
  some = redis.call('XRANGE', QUEUE, from, '+', 'COUNT', page)
  for _, entry in ipairs(some) do
    if #entries >= limit or (#entries > 0 and room <= 0) then
      more = 1
      break
    end
    entries[#entries + 1] = entry
    room = room - #(entry[2][2] or '')
    from = '(' .. entry[1]
  end
  local over = #some < page or more == 1
  page = math.min(2 * page, 64)
until over
return {first[1], entries, more}
