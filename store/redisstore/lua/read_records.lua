#!lua flags=no-writes
-- read_records: every record of a kind, and the number of the last change.
--
-- KEYS  changes, records
--
-- returns the number, then name and value of each record

local reply = redis.call('HGETALL', RECORDS)
table.insert(reply, 1, redis.call('GET', CHANGES) or '0')
return reply
