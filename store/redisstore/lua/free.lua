#!lua flags=allow-oom
-- free: end permits.
--
-- KEYS  two per permit, all of one part: permits (zset holder -> until ms), waiting
-- ARGV  the holders, in order
--
-- returns per permit: the nodes that wait, the first in turn first

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
-- include waiting.lua

local out = {}
for i, holder in ipairs(ARGV) do
  redis.call('ZREM', KEYS[2 * i - 1], holder)
  local nodes = {}
  for k, t in ipairs(turns(KEYS[2 * i])) do nodes[k] = t[1] end
  out[i] = nodes
end
return out
