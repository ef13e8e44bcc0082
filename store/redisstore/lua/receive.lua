-- What a shard has received of queues, see store.Receipt. A number is 8 bytes, as it is stored.
--   receipt(stored) reads the stored entity of a receipt, which may be false: {version, floor, above, refused}, the
--     latter two packed; nil when it cannot be read
--   settled(r, numbers, made, refused) adds to made and refused which of some packed numbers are settled
--   taken(r, head, numbers, refused) is the stored entity once packed numbers are settled, of which refused
--     are refused, too, and how many numbers it has above its floor
--   has_room(r, head, numbers) says whether the window has room for packed numbers, or the head is one of them
local function receipt(stored)
  if not stored then return {0, 0, '', ''} end
  if #stored < 25 or #stored < 36 + byte(stored, 17) then return nil end
  local body = sub(stored, 26 + byte(stored, 17))
  local format, floor, n = take('>Bi8I2', body)
  if format ~= RECEIPT_FORMAT or (#body - 11) % 8 ~= 0 or #body < 11 + 8 * n then return nil end
  return {take('>i8', stored), floor, sub(body, 12, 11 + 8 * n), sub(body, 12 + 8 * n)}
end

local function each(packed, see)
  for at = 1, #packed, 8 do see(sub(packed, at, at + 7)) end
end

local function set_of(packed)
  local set = {}
  each(packed, function(n) set[n] = true end)
  return set
end

local function settled(r, numbers, made, refused)
  if r[1] == 0 then return end
  local above, no = set_of(r[3]), set_of(r[4])
  each(numbers, function(n)
    if no[n] then refused[#refused + 1] = n
    elseif above[n] or take('>i8', n) <= r[2] then made[#made + 1] = n
    end
  end)
end

-- merged returns packed numbers in their order, those of a being so; covered is how many are up to a floor.
local function merged(a, b, floor)
  local all, last, rises, covered = {}, #a > 0 and take('>i8', a, #a - 7) or -1, true, 0
  each(b, function(n)
    local number = take('>i8', n)
    rises = rises and number > last
    last = number
  end)
  local joined = a .. b
  if not rises then
    each(joined, function(n) all[#all + 1] = {take('>i8', n), n} end)
    table.sort(all, function(x, y) return x[1] < y[1] end)
    for i = 1, #all do all[i] = all[i][2] end
    joined = table.concat(all)
  end
  while covered < #joined / 8 and take('>i8', joined, 8 * covered + 1) <= floor do covered = covered + 1 end
  return joined, covered
end

local function taken(r, head, numbers, refused)
  local floor = math.max(r[2], head - 1)
  local above, covered = merged(r[3], numbers, floor)
  above = sub(above, 8 * covered + 1)
  local no, below = merged(r[4], refused, floor)
  no = sub(no, 8 * math.min(below, math.max(0, #no / 8 - KEPT_REFUSED)) + 1)
  return pack('>i8i8B', r[1] + 1, 0, 0) .. '\128\0\0\0\0\0\0\0' .. pack('>Bi8I2', RECEIPT_FORMAT, floor, #above / 8) .. above .. no, #above / 8
end

local function has_room(r, head, numbers)
  local _, n = taken(r, head, numbers, '')
  return n <= MAX_RECEIVE or set_of(numbers)[pack('>i8', head)]
end
