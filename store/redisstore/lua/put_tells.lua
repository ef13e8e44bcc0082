-- Stores which cells new tasks tell. told_cells has for each task that tells one its position
-- in 2 bytes, the length of the cell's id in 2, and that; the tasks are those of ids, and new
-- says by position which of them are new, nil all. The caller looked at TELLS when there are some.
if told_cells ~= '' then
  local hset, at = {}, 1
  while at <= #told_cells do
    local i, size = struct.unpack('>I2I2', told_cells, at)
    if not new or new[i] then hset[#hset + 1], hset[#hset + 2] = ids[i], string.sub(told_cells, at + 4, at + 3 + size) end
    at = at + 4 + size
  end
  if #hset > 0 then
    if not owner[8] then redis.call('HSET', OWNER, 'in', 0, 'schema', 2) end
    redis.call('HSET', TELLS, unpack(hset))
  end
end
