-- remember appends an attempt that is over to what the history hash keeps of a task, and
-- drops the oldest beyond 20. An entry is its length in 4 bytes, the outcome in 1, the
-- number of the attempt in 4, when it ended in 8, the length of who had it in 2, who had
-- it (see running.lua), when the task was due in 8, the id of its trace in 16, and the error.
-- The length has KEPT_DUE and KEPT_TRACE added when the entry has the one or the other;
-- entries of before there were any have neither.
local function remember(past, outcome, attempt, who, why, due, trace)
  past = past or ''
  local ends, at = {}, 1
  while at + 3 <= #past do
    at = at + 4 + struct.unpack('>I4', past, at)
    ends[#ends + 1] = at
  end
  if #ends >= 20 then past = string.sub(past, ends[#ends - 19]) end
  local length = #who + KEPT_DUE + (#trace == 16 and KEPT_TRACE or 0)
  local entry = struct.pack('>BI4i8I2', outcome, attempt, now, length) .. who .. struct.pack('>i8', due) .. trace .. why
  return past .. struct.pack('>I4', #entry) .. entry
end
