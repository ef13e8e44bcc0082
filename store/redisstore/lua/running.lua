-- Who has a task is in its running record behind the length: the name of the worker, the
-- name of the node and its length in 1 byte, when the hold began in 8 bytes, and a mark,
-- 254 or, once its cancellation was asked for, 255. Names are UTF-8, so a record of before
-- there was more than the worker's name has no mark.
local function began(at) return struct.pack('>i8B', at, MARK_HELD) end
local started = began(now)
