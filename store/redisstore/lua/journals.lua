#!lua flags=no-writes
-- journals: the journals of tasks.
--
-- KEYS  tells
-- ARGV  ids
--
-- returns per task {name, when it was kept in 8 bytes and what it returned, ...}

-- include journal.lua
local all = {}
for i, id in ipairs(ARGV) do
  local own, names, fields, journal = journal_of(id), {}, {}, {}
  each_name(redis.call('HGET', TELLS, own), function(name)
    names[#names + 1], fields[#fields + 1] = name, own .. name
  end)
  if #fields > 0 then
    for k, value in ipairs(redis.call('HMGET', TELLS, unpack(fields))) do
      journal[2 * k - 1], journal[2 * k] = names[k], value or ''
    end
  end
  all[i] = journal
end
return all
