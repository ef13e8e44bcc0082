-- places looks up where tasks lie, and with that checks the type of every key:
-- per task {place, detail, note}, the place being 0 nowhere, 1 pending (detail:
-- due ms), 2 running (record), 3 dead (finished ms), 4 done (finished ms).
local function places(ids)
  local due = redis.call('ZMSCORE', TASKS, unpack(ids))
  local run = redis.call('HMGET', RUNNING, unpack(ids))
  local note = redis.call('HMGET', NOTES, unpack(ids))
  local dead = redis.call('ZMSCORE', DLQ, unpack(ids))
  local done = redis.call('ZMSCORE', DONE, unpack(ids))
  redis.call('ZCARD', KEPT)
  redis.call('HLEN', HISTORY)
  redis.call('HLEN', TRAITS)
  redis.call('ZCARD', LANES)
  local found = {}
  for i = 1, #ids do
    if run[i] then found[i] = {2, run[i], note[i]}
    elseif due[i] then found[i] = {1, due[i], note[i]}
    elseif dead[i] then found[i] = {3, dead[i], note[i]}
    elseif done[i] then found[i] = {4, done[i], note[i]}
    else found[i] = {0, false, note[i]}
    end
  end
  return found
end
