-- expiry is when a task of a record expires, in ms; 0: never.
local function expiry(record)
  if string.byte(record) % 2 == 0 or #record < 17 then return 0 end
  return (struct.unpack('>i8', record, 10))
end
