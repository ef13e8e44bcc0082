#!lua flags=allow-oom
-- sweep_attrs: give tasks back the attributes by which they are indexed, where they lost
-- all of them and are what they were when they were read.
--
-- KEYS  those of a shard
-- ARGV  1 epoch  2 nonce  3 field indexed of the owner record, as it was  4 and on, per task:
--       id, fingerprint, edits, packed attributes
--
-- returns how many it repaired, or -1 fenced

-- include owner.lua
if owner[2] ~= ARGV[1] or owner[3] ~= ARGV[2] then return -1 end
if owner[5] ~= ARGV[3] then return 0 end
-- include attrs.lua
-- include edits.lua
local ids = {}
for i = 4, #ARGV, 4 do ids[#ids + 1] = ARGV[i] end
local records, attrs = redis.call('HMGET', DATA, unpack(ids)), attrs_of(ids)
local hset, zadd = {}, {}
for k, id in ipairs(ids) do
  local record, at = records[k], 4 * k
  if not attrs[k] and record and #record >= 9 and string.sub(record, 2, 9) == ARGV[at + 1] and edits(record) == ARGV[at + 2] + 0 then
    hset[#hset + 1], hset[#hset + 2] = id, ARGV[at + 3]
    members(zadd, id, ARGV[at + 3], 0)
  end
end
in_parts('HSET', ATTRS, hset)
in_parts('ZADD', INDEX, zadd)
return #hset / 2
