#!lua flags=no-writes
-- lanes: the first member of each lane behind a given one.
--
-- KEYS  lanes
-- ARGV  1 lane, empty for the first  2 most lanes
--
-- returns the members

local behind = string.rep('\255', 9) -- no due time and id come behind it
local heads, from = {}, '-'
if ARGV[1] ~= '' then from = '(' .. ARGV[1] .. behind end
while #heads < tonumber(ARGV[2]) do
  local head = redis.call('ZRANGE', LANES, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not head then break end
  heads[#heads + 1] = head
  from = '(' .. string.sub(head, 1, 2 + string.byte(head, 2)) .. behind
end
return heads
