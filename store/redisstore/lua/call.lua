-- A call has one moment, also when it takes several scripts: the last argument
-- is that of the first script in microseconds, and 0 in the first. A w in front
-- says that replicas are waited for, also when there turns out to be nothing to
-- do: an earlier call may have done it and not have reached them.
local moment = table.remove(ARGV)
if string.byte(moment) == 119 then
  redis.call('HSET', OWNER, 'waited', '')
  moment = string.sub(moment, 2)
end
moment = tonumber(moment)
if moment > 0 then
  us, now, soon = moment, math.floor(moment / 1000), math.ceil(moment / 1000)
end
