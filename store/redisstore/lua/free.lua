#!lua flags=allow-oom
-- free: end permits.
--
-- KEYS  two per request, all of one part: permits (zset holder -> until ms), waiting
-- ARGV  per request: number of holders, at most 1000, and the holders
--
-- returns per request: the nodes that wait, the first in turn first

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
-- include waiting.lua

local out, arg = {}, 1
for k = 1, #KEYS, 2 do
  local n = tonumber(ARGV[arg])
  redis.call('ZREM', KEYS[k], unpack(ARGV, arg + 1, arg + n))
  local nodes = {}
  for i, t in ipairs(turns(KEYS[k + 1])) do nodes[i] = t[1] end
  out[#out + 1] = nodes
  arg = arg + 1 + n
end
return out
