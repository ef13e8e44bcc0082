#!lua flags=allow-oom
-- remove_dead: delete dead tasks.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes  11 history
--       12 marks  13 looks  14 attrs  15 index  16 log
-- ARGV  ids, none twice
--       and last the moment (see call.lua)
--
-- returns {us, seq, odd}; a task that is not odd is gone
--   odd  {position, status}: 10 not dead

-- include owner.lua
-- include call.lua
-- include log.lua
-- include status.lua
-- include places.lua
-- include attrs.lua
redis.call('HLEN', KEYS[3])
local gone, odd = {}, {}
for i, p in ipairs(places(ARGV)) do
  if p[1] == 3 then
    gone[#gone + 1] = ARGV[i]
    if watched then tell(DELETED, ARGV[i], attempts_of(p[3])) end
  else
    odd[#odd + 1] = {i, NOT_FOUND}
  end
end
local attrs = attrs_of(gone)
if #gone > 0 then
  redis.call('HDEL', KEYS[3], unpack(gone))
  redis.call('HDEL', KEYS[5], unpack(gone))
  redis.call('HDEL', KEYS[11], unpack(gone))
  redis.call('HDEL', KEYS[9], unpack(gone))
  forget_attrs(gone, attrs)
  redis.call('ZREM', KEYS[6], unpack(gone))
end
if watched then told(gone, attrs) end
return {us, seq, odd}
