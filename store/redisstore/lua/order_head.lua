-- order_head is the id of the first unfinished task of an ordering key, and its due
-- time, false when it is held; nil when there is none. What points to no unfinished
-- task, which Sweep removes, does not count. The caller included order_key.lua.
local function order_head(key)
  local prefix = string.char(#key) .. key
  for skip = 0, 99 do
    local member = redis.call('ZRANGE', ORDER, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', skip, 1)[1]
    if not member then return nil end
    local id = string.sub(member, #prefix + 9)
    if redis.call('HEXISTS', RUNNING, id) == 1 then return id, false end
    local due = redis.call('ZSCORE', TASKS, id)
    if due then return id, due end
  end
  return nil
end
