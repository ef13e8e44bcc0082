#!lua flags=no-writes
-- histogram: count pending tasks by due time, or cells by when they wake.
--
-- KEYS  owner, set
--       the set is tasks or wakes
-- ARGV  bounds in ms, rising
--
-- returns {us, seq, inbox, counts}; counts: due before the first bound, from there to before
--   the second and so on, from the last on

-- include owner.lua
local counts, below = {}, 0
for i = 1, #ARGV do
  local n = redis.call('ZCOUNT', SET, '-inf', '(' .. ARGV[i])
  counts[i], below = n - below, n
end
counts[#ARGV + 1] = redis.call('ZCOUNT', SET, '-inf', '(+inf') - below
return {us, seq, inbox, counts}
