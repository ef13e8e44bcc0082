#!lua flags=no-writes
-- histogram: count pending tasks by due time.
--
-- KEYS  owner, tasks
-- ARGV  bounds in ms, rising
--
-- returns {us, seq, counts}; counts: due before the first bound, from there to before
--   the second and so on, from the last on

-- include owner.lua
local counts, below = {}, 0
for i = 1, #ARGV do
  local n = redis.call('ZCOUNT', TASKS, '-inf', '(' .. ARGV[i])
  counts[i], below = n - below, n
end
counts[#ARGV + 1] = redis.call('ZCOUNT', TASKS, '-inf', '(+inf') - below
return {us, seq, counts}
