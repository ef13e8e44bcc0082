#!lua flags=allow-oom
-- delete_topic: delete a topic's configuration, unless it has changed since it was read.
--
-- KEYS  topics
-- ARGV  1 name  2 configuration as read
--
-- returns 1, or 0 changed

if redis.call('HGET', TOPICS, ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HDEL', TOPICS, ARGV[1])
return 1
