-- in_window is the entries of SET from a place in it on, up to a score: ARGV has score and
-- member of a position, both empty for the start, the last score and how many at most.
-- include above.lua
local function in_window()
  local first = 0
  local last = redis.call('ZCOUNT', SET, '-inf', ARGV[3])
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
  if stop < first then return {} end
  return redis.call('ZRANGE', SET, first, stop, 'WITHSCORES')
end
