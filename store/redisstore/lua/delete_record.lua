#!lua flags=allow-oom
-- delete_record: delete a record of the registry, unless it has changed since it was read.
--
-- KEYS  changes, records
-- ARGV  1 name  2 version as read
--
-- returns the number of this change, or 0 changed since

local current = redis.call('HGET', RECORDS, ARGV[1])
if not current or current:match('^%d+') ~= ARGV[2] then return 0 end
redis.call('HDEL', RECORDS, ARGV[1])
return redis.call('INCR', CHANGES)
