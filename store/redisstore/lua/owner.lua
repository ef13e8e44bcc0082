-- The owner record and the moment. Scripts that can make tasks pending take
-- "count" and answer with "pended": a call of several scripts raises seq once, in
-- its last one, after all its tasks are there. 0: not now; 1: when this script
-- made a task pending; 2: in any case.
-- seq, inbox (number of the last parcel that the in-box got), us (microseconds), now
-- (milliseconds, rounded down), soon (rounded up: what is to come is never early).
local owner = redis.call('HMGET', OWNER, 'seq', 'epoch', 'nonce', 'sealed', 'indexed', 'watched', 'life', 'in')
local seq = tonumber(owner[1] or 0)
if not seq then
  return redis.error_reply('ERR ddq: seq of the shard is not a number')
end
local inbox = owner[8] and tonumber(owner[8]) or 0
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now, soon = math.floor(us / 1000), math.ceil(us / 1000)
