#!lua flags=no-writes
-- window: entries of an ordered set behind a position, up to a score.
--
-- KEYS  owner, set, traits
--       the set is tasks, dlq or done
-- ARGV  1 score and 2 member of the position, both empty for the start
--       3 last score, as in ZCOUNT  4 most entries
--
-- returns {us, seq, entries: member, score, member, score, ..., traits per entry or
--   nothing when no task has any}

-- include owner.lua
local first = 0
local last = redis.call('ZCOUNT', SET, '-inf', ARGV[3])

-- include above.lua

if ARGV[1] ~= '' then
  first = redis.call('ZCOUNT', SET, '-inf', '(' .. ARGV[1])
  -- The member may be gone, so look for its place among those of its score.
  local behind = redis.call('ZCOUNT', SET, '-inf', ARGV[1])
  while first < behind do
    local middle = math.floor((first + behind) / 2)
    if above(redis.call('ZRANGE', SET, middle, middle)[1], ARGV[2]) then
      behind = middle
    else
      first = middle + 1
    end
  end
end
local stop = math.min(first + ARGV[4], last) - 1
if stop < first then return {us, seq, {}, {}} end
local flat = redis.call('ZRANGE', SET, first, stop, 'WITHSCORES')
if redis.call('HLEN', TRAITS) == 0 then return {us, seq, flat, {}} end
local ids = {}
for i = 1, #flat, 2 do ids[#ids + 1] = flat[i] end
return {us, seq, flat, redis.call('HMGET', TRAITS, unpack(ids))}
