#!lua
-- reindex: index tasks that were looked at, as a part of a walk.
--
-- KEYS  those of a shard
-- ARGV  1 set  2 token of the walk  3 b: it begins, and there are no tasks; e: it ends;
--       else empty  4 and on, per task: id, fingerprint, edits, packed attributes
--
-- returns 0, 1 there is nothing to do, or -3 the walk is over

-- include owner.lua
-- include attrs.lua
-- include index_state.lua
-- include edits.lua
local set, walk = ARGV[1], '\0' .. ARGV[2] .. ARGV[1]
local list, _, under_way = names(owner[5] or '')
local ready = table.concat(list)
if ARGV[3] == 'b' then
  if (owner[5] or '') == set then return 1 end
  redis.call('HSET', OWNER, 'indexed', both(ready, set) .. walk)
  return 0
end
if under_way ~= walk then return -3 end

local ids = {}
for i = 4, #ARGV, 4 do ids[#ids + 1] = ARGV[i] end
local hset, bare, old, new = {}, {}, {}, {}
if #ids > 0 then
  local records, attrs = redis.call('HMGET', DATA, unpack(ids)), attrs_of(ids)
  for k, id in ipairs(ids) do
    local record, at = records[k], 4 * k
    local count = record and #record >= 9 and edits(record)
    local was, is = attrs[k] or '', ARGV[at + 3]
    if count and string.sub(record, 2, 9) == ARGV[at + 1] and count == ARGV[at + 2] + 0 and was ~= is then
      members(old, id, was)
      members(new, id, is, 0)
      if is ~= '' then hset[#hset + 1], hset[#hset + 2] = id, is else bare[#bare + 1] = id end
    end
  end
end
in_parts('HDEL', ATTRS, bare)
in_parts('HSET', ATTRS, hset)
in_parts('ZREM', INDEX, old)
in_parts('ZADD', INDEX, new)
if ARGV[3] == 'e' then
  if set == '' and redis.call('HLEN', ATTRS) == 0 then
    redis.call('HDEL', OWNER, 'indexed')
  else
    redis.call('HSET', OWNER, 'indexed', set)
  end
end
return 0
