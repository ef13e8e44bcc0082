#!lua
-- put_record: store a record of the registry, unless it has changed since it was read.
--
-- KEYS  changes, records
-- ARGV  1 name  2 version as read, 0 when absent  3 value  4 most records of the kind
--
-- returns the number of this change, 0 changed since, or -1 too many records

local current = redis.call('HGET', RECORDS, ARGV[1])
if (current and current:match('^%d+') or '0') ~= ARGV[2] then return 0 end
if not current and redis.call('HLEN', RECORDS) >= tonumber(ARGV[4]) then return -1 end
local change = redis.call('INCR', CHANGES)
redis.call('HSET', RECORDS, ARGV[1], string.format('%d:', change) .. ARGV[3])
return change
