#!lua flags=allow-oom
-- reserve: take tokens of rates. store/limit computes the same; change both.
--
-- KEYS  1..n the rates, all of one part
-- ARGV  per key, in order: kind (0 bucket, 1 window), count, period us, most at once,
--       wanted, ahead us, 1 all or none
--
-- returns {us, then per key: granted, first us}
--
-- A bucket is its kind, when its next token comes, and the period and count of the
-- rate it was computed with. A window is its kind, when its last token came, and
-- for slots with tokens, the oldest first, until when they count but for a period,
-- and how many they are.

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local pack, unpack8, floor, ceil = struct.pack, struct.unpack, math.floor, math.ceil

-- farthest is up to when tokens can have been taken, which is MAX_AHEAD us from now or more. What was
-- used up for longer was so by a clock that was ahead.
local function farthest(limit) return math.max(limit, us + MAX_AHEAD) end

local function put(key, state, rests)
  redis.call('SET', key, state, 'PX', string.format('%d', ceil(math.max(0, rests - us) / 1000) + 1000))
end

local function bucket(key, count, period, most, wanted, limit, whole)
  local state = redis.call('GET', key)
  local slack = floor((most - 1) * period / count)
  local next = 0
  if state and #state == 25 and string.byte(state) == 0 then
    local at, p, c = unpack8('>i8i8i8', state, 2)
    if at > us and (p ~= period or c ~= count) then at = us + floor((at - us) * c / p * period / count) end
    if at > farthest(limit) + ceil(most * period / count) then at = us end
    next = at
  end
  next = math.max(next, us - slack)
  local granted = 0
  local last = next + ceil(math.max(0, wanted - 1) * period / count)
  if whole then
    if last > limit then return 0, last end
    granted = wanted
  elseif next <= limit then
    granted = math.min(wanted, floor((limit - next) * count / period) + 1)
  end
  if granted > 0 then
    local after = next + ceil(granted * period / count)
    put(key, '\0' .. pack('>i8i8i8', after, period, count), after + slack)
  end
  return granted, next
end

local function window(key, count, period, wanted, limit, whole)
  local state = redis.call('GET', key)
  local at, used, ends, counts = us, 0, {}, {}
  if state and #state >= 9 and string.byte(state) == 1 then
    local last = unpack8('>i8', state, 2)
    local future = last > farthest(limit) + period
    if not future then at = math.max(at, last) end
    for pos = 10, #state, 12 do
      local till, n = unpack8('>i8I4', state, pos)
      if till + period > at and not future then
        ends[#ends + 1], counts[#counts + 1] = till, n
        used = used + n
      end
    end
  end
  local need = whole and math.max(1, wanted) or 1
  local over = 0
  while over < #ends and count - used < need do
    over = over + 1
    used = used - counts[over]
    at = math.max(at, ends[over] + period)
  end
  local free = count - used
  if free < need or at > limit or wanted == 0 then return 0, at end
  local granted = whole and wanted or math.min(wanted, free)
  local slot = math.max(1000, floor(period / 64))
  local till = at - at % slot + 2 * slot
  if #ends > over and ends[#ends] >= till then
    counts[#ends] = counts[#ends] + granted
  else
    ends[#ends + 1], counts[#counts + 1] = till, granted
  end
  local parts = {'\1' .. pack('>i8', at)}
  for i = over + 1, #ends do parts[#parts + 1] = pack('>i8I4', ends[i], counts[i]) end
  put(key, table.concat(parts), ends[#ends] + period)
  return granted, at
end

local out = {us}
for i, key in ipairs(KEYS) do
  local a = {}
  for k = 1, 7 do a[k] = tonumber(ARGV[7 * i - 7 + k]) end
  local kind, count, period, most, wanted, limit, whole = a[1], a[2], a[3], a[4], a[5], us + a[6], a[7] == 1
  local granted, first
  if kind == SLIDING_WINDOW then
    granted, first = window(key, count, period, wanted, limit, whole)
  else
    granted, first = bucket(key, count, period, most, wanted, limit, whole)
  end
  out[#out + 1], out[#out + 2] = granted, first
end
return out
