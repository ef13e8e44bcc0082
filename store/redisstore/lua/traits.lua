-- traits_of looks up the traits of tasks: per task the encoded traits or false, or nil
-- when no task has any.
local function traits_of(ids)
  redis.call('ZCARD', KEYS[10])
  if redis.call('HLEN', KEYS[9]) == 0 then return nil end
  return redis.call('HMGET', KEYS[9], unpack(ids))
end
