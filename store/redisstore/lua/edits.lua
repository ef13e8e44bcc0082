-- edits is how often a record says that its task was edited, and from where to
-- where in it that stands.
local function edits(record)
  local flags, from = string.byte(record) % 16, 10
  if flags % 2 == 1 then from = from + 8 end
  if math.floor(flags / 2) % 2 == 1 then from = from + 8 end
  if math.floor(flags / 4) % 2 == 0 then return 0, from, from end
  if #record < from + 7 then return nil end
  return struct.unpack('>i8', record, from), from, from + 8
end
