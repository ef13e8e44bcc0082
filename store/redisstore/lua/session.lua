#!lua flags=no-writes
-- session: a node's session against the clock that it lasts by.
--
-- KEYS  session
--
-- returns {start or false, 1 while it lasts and 0 afterwards}

-- include session_lives.lua
local session = redis.call('HMGET', SESSION, 'start', 'expires', 'ttl')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {session[1], lives(session[2], session[3], now) and 1 or 0}
