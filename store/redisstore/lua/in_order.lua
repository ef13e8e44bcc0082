#!lua flags=no-writes
-- in_order: the first unfinished tasks of ordering keys.
--
-- KEYS  1 owner  2 tasks  3 data  4 running  5 notes  6 dlq  7 done  8 kept  9 traits  10 lanes
--       11 history  12 marks  13 looks  14 attrs  15 index  16 log  17 order
-- ARGV  1 most tasks of a key  2 and on: the keys
--       and last the moment (see call.lua)
--
-- returns {us, seq, tasks}; tasks: per key id, due ms or false when it is held, traits, id, ...

-- include owner.lua
-- include call.lua
-- include order_key.lua
local all = {}
for i = 2, #ARGV do
  local prefix, found = string.char(#ARGV[i]) .. ARGV[i], {}
  local members = redis.call('ZRANGE', ORDER, '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', 'LIMIT', 0, ARGV[1])
  for _, member in ipairs(members) do
    local id = string.sub(member, #prefix + 9)
    local held = redis.call('HEXISTS', KEYS[4], id) == 1
    local due = not held and redis.call('ZSCORE', KEYS[2], id)
    if held or due then
      found[#found + 1] = id
      found[#found + 1] = due
      found[#found + 1] = redis.call('HGET', KEYS[9], id)
    end
  end
  all[i - 1] = found
end
return {us, seq, all}
