-- cancelled is a running record with the mark that the cancellation of its task was asked
-- for, and whether it had that before; nil when it cannot be read.
local function cancelled(record)
  if #record < 30 then return nil end
  local length = struct.unpack('>I2', record, 29)
  local who, mark = string.sub(record, 31, 30 + length), string.byte(record, 30 + length)
  if mark == MARK_HELD or mark == MARK_CANCELLED then
    who = string.sub(who, 1, -2) .. string.char(MARK_CANCELLED)
  else -- as running.lua has it, of before it was
    who = who .. struct.pack('>Bi8B', 0, 0, MARK_CANCELLED)
  end
  return string.sub(record, 1, 28) .. struct.pack('>I2', #who) .. who .. string.sub(record, 31 + length), mark == MARK_CANCELLED
end
