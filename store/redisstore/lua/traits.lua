-- traits_of looks up the traits of tasks: per task the encoded traits or false, or nil
-- when no task has any.
local function traits_of(ids)
  redis.call('ZCARD', LANES)
  if redis.call('HLEN', TRAITS) == 0 then return nil end
  return redis.call('HMGET', TRAITS, unpack(ids))
end
