#!lua flags=no-writes
-- session: a node's session against the clock that it lasts by.
--
-- KEYS  1 session
--
-- returns {start or false, 1 while it lasts and 0 afterwards}

local session = redis.call('HMGET', KEYS[1], 'start', 'expires')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {session[1], (tonumber(session[2]) or 0) > now and 1 or 0}
