#!lua flags=allow-oom
-- acquire: take permits of caps. store/limit computes the same; change both.
--
-- KEYS  two per request, all of one part: permits (zset holder -> until ms), waiting
-- ARGV  per request: max, node or empty, until ms, number of holders, the holders
--
-- returns per request: granted, in use, and for one with neither holders nor node
--       ms of the next that ends, else 0

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = math.floor(us / 1000)
-- include waiting.lua

local out, arg = {}, 1
for k = 1, #KEYS, 2 do
  local permits, waiting = KEYS[k], KEYS[k + 1]
  local max, node, till, n = tonumber(ARGV[arg]), ARGV[arg + 1], ARGV[arg + 2], tonumber(ARGV[arg + 3])
  redis.call('ZREMRANGEBYSCORE', permits, '-inf', now)
  local used = redis.call('ZCARD', permits)
  local turn, place = turns(waiting), nil
  for i, t in ipairs(turn) do if t[1] == node then place = i end end
  local free = max - used - (place and place - 1 or #turn)
  local granted, first, upto = 0, arg + 4, arg + 3 + n
  local from, expires = first, string.format('%d', till + 1000)
  while granted == from - first and from <= upto do
    local to = math.min(from + 999, upto)
    local has, add, left = nil, {}, free
    if free <= to - from then has = redis.call('ZMSCORE', permits, unpack(ARGV, from, to)) end
    for i = from, to do
      if has and not has[i - from + 1] then
        if left <= 0 then break end
        left = left - 1
      end
      add[#add + 1], add[#add + 2] = till, ARGV[i]
      granted = granted + 1
    end
    if #add > 0 then
      local new = redis.call('ZADD', permits, unpack(add))
      if used == 0 then
        redis.call('PEXPIREAT', permits, expires)
      elseif from == first then -- the key may last longer already
        redis.call('PEXPIREAT', permits, expires, 'GT')
      end
      free, used = free - new, used + new
    end
    from = to + 1
  end
  if node ~= '' then
    if granted == n then
      if place then redis.call('HDEL', waiting, node) end
    else
      local since = place and granted == 0 and turn[place][2] or us
      redis.call('HSET', waiting, node, struct.pack('>i8i8', since, us))
      redis.call('PEXPIRE', waiting, 10000)
    end
  end
  out[#out + 1] = granted
  out[#out + 1] = used
  out[#out + 1] = n == 0 and node == '' and tonumber(redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')[2] or 0) or 0
  arg = arg + 4 + n
end
return out
