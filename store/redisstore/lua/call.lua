-- A call has one moment, also when it takes several scripts: the last argument
-- is that of the first script in microseconds, and 0 in the first.
local moment = tonumber(table.remove(ARGV))
if moment > 0 then
  us, now, soon = moment, math.floor(moment / 1000), math.ceil(moment / 1000)
end
