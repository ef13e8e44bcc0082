#!lua flags=allow-oom
-- renew: make a node's session last for a while from now, and take the notes of others
-- for it (see want.lua). The end is a field and not a TTL, because TTLs jump when the
-- server's clock is set.
--
-- KEYS  session
-- ARGV  1 start  2 ttl ms  3 address  4 1 to replace the session of another start,
--       which is else done only when that is over
--
-- returns {us, 1 if there was no session, and for each note the shard and the node that wants
--   it}, or the address of the session of another start that lasts

-- include session_lives.lua
local session = redis.call('HMGET', SESSION, 'start', 'expires', 'ttl', 'addr')
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
if ARGV[4] ~= '1' and session[1] and session[1] ~= ARGV[1] and lives(session[2], session[3], us / 1000) then
  return session[4] or ''
end
local answer = {us, session[1] and 0 or 1}
if redis.call('HLEN', SESSION) > 4 then
  local fields = redis.call('HGETALL', SESSION)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 5) == 'want ' then
      answer[#answer + 1] = string.sub(fields[i], 6)
      answer[#answer + 1] = fields[i + 1]
      redis.call('HDEL', SESSION, fields[i])
    end
  end
end
redis.call('HSET', SESSION, 'start', ARGV[1], 'expires', math.ceil(us / 1000) + ARGV[2], 'ttl', ARGV[2], 'addr', ARGV[3])
return answer
