-- The log of a shard behind a position, see changes.lua.
local owner = redis.call('HMGET', OWNER, 'watched', 'logged')
local last, limit = tonumber(owner[2]) or 0, tonumber(ARGV[2])
local entries, n = {}, 0
local from = '-'
if ARGV[1] ~= '-1' then from = '(' .. ARGV[1] end
while n < limit do
  local page = redis.call('XRANGE', LOG, from, '+', 'COUNT', 8)
  for _, entry in ipairs(page) do
    if n < limit then
      entries[#entries + 1] = entry
      n = n + struct.unpack('>I4', entry[2][2], 9)
    end
  end
  if #page < 8 then break end
  from = '(' .. page[8][1]
end
if limit == 0 then
  -- The first one tells whether something is missing.
  entries = redis.call('XRANGE', LOG, from, '+', 'COUNT', 1)
end
return {owner[1] and 1 or 0, last, entries}
