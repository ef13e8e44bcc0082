#!lua flags=allow-oom
-- want: session, and a note in it that another node wants a shard, while it lasts. A node
-- of a version without notes does not take them: so they are few.
--
-- KEYS  session
-- ARGV  1 shard  2 node that wants it
--
-- returns {start or false, 1 while it lasts and 0 afterwards}

-- include session_lives.lua
local session = redis.call('HMGET', SESSION, 'start', 'expires', 'ttl')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lasts = lives(session[2], session[3], now)
local note = 'want ' .. ARGV[1]
if lasts and (redis.call('HLEN', SESSION) < MAX_WANTED + 4 or redis.call('HEXISTS', SESSION, note) == 1) then
  redis.call('HSET', SESSION, note, ARGV[2])
end
return {session[1], lasts and 1 or 0}
