#!lua
-- put_topic: store a topic's configuration, unless it has changed since it was read.
--
-- KEYS  topics
-- ARGV  1 name  2 configuration as read, empty when absent  3 new configuration
--
-- returns 1, or 0 changed

if (redis.call('HGET', TOPICS, ARGV[1]) or '') ~= ARGV[2] then return 0 end
redis.call('HSET', TOPICS, ARGV[1], ARGV[3])
return 1
