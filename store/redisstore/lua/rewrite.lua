#!lua
-- rewrite: write fields of a hash anew that are as they were read.
--
-- KEYS  hash
-- ARGV  per field: field, SHA-1 of the value that was read in hex, new value
--
-- returns the fields that have another value by now

local changed, hset = {}, {}
for i = 1, #ARGV, 3 do
  local value = redis.call('HGET', HASH, ARGV[i])
  if value and redis.sha1hex(value) == ARGV[i + 1] then
    hset[#hset + 1], hset[#hset + 2] = ARGV[i], ARGV[i + 2]
  elseif value then
    changed[#changed + 1] = ARGV[i]
  end
end
if #hset > 0 then redis.call('HSET', HASH, unpack(hset)) end
return changed
