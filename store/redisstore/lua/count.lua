-- Raises seq as count says, once everything else is written.
if count == '2' or (pended and count == '1') then
  seq = seq + 1
  redis.call('HSET', OWNER, 'seq', seq)
end
