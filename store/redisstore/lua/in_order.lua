#!lua flags=no-writes
-- in_order: the first unfinished tasks of ordering keys.
--
-- KEYS  those of a shard
-- ARGV  1 most tasks of a key  2 and on: the keys
--       and last the moment (see call.lua)
--
-- returns {us, seq, inbox, tasks}; tasks: per key id, due ms or false when it is held, traits, id, ...

-- include owner.lua
-- include call.lua
-- include order_key.lua
local all = {}
for i = 2, #ARGV do
  local prefix, found = string.char(#ARGV[i]) .. ARGV[i], {}
  local members = redis.call('ZRANGE', ORDER, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, ARGV[1])
  for _, member in ipairs(members) do
    local id = string.sub(member, #prefix + 9)
    local held = redis.call('HEXISTS', RUNNING, id) == 1
    local due = not held and redis.call('ZSCORE', TASKS, id)
    if held or due then
      found[#found + 1] = id
      found[#found + 1] = due
      found[#found + 1] = redis.call('HGET', TRAITS, id)
    end
  end
  all[i - 1] = found
end
return {us, seq, inbox, all}
