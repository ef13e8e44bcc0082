-- places looks up where tasks lie, and with that checks the type of every key:
-- per task {place, detail, note}. The detail of a pending one is its due ms, of a running
-- one the record, of a dead or done one when it finished. Places are in this order: none,
-- pending, running, dead, done.
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
    if run[i] then found[i] = {PLACE_RUNNING, run[i], note[i]}
    elseif due[i] then found[i] = {PLACE_PENDING, due[i], note[i]}
    elseif dead[i] then found[i] = {PLACE_DEAD, dead[i], note[i]}
    elseif done[i] then found[i] = {PLACE_DONE, done[i], note[i]}
    else found[i] = {PLACE_NONE, false, note[i]}
    end
  end
  return found
end
