#!lua flags=allow-oom
-- reserve: take tokens of rates. store/limit computes the same; change both.
--
-- KEYS  two per rate, all of one part: its state, those in line for it (see take.lua)
-- ARGV  per key, in order: kind (0 bucket, 1 window), count, period us, most at once,
--       wanted, ahead us, 1 all or none, life of a window's token us
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
  local slack = ceil((most - 1) * period / count)
  local next, rescaled = 0, false
  if state and #state == 25 and string.byte(state) == 0 then
    local at, p, c = unpack8('>i8i8i8', state, 2)
    rescaled = at > us and (p ~= period or c ~= count)
    if rescaled then at = us + floor((at - us) * c / p * period / count) end
    if at > farthest(limit) + ceil(most * period / count) then at = us end
    next = at
  end
  next = math.max(next, us - slack)
  if rescaled then put(key, '\0' .. pack('>i8i8i8', next, period, count), next + slack) end
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

local function window(key, count, period, wanted, limit, whole, life)
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
  local from = at + math.max(0, life - slot)
  local till = from - from % slot + 2 * slot
  if #ends > over and ends[#ends] >= till then
    counts[#ends] = counts[#ends] + granted
  else
    ends[#ends + 1], counts[#counts + 1] = till, granted
  end
  local parts = {'\1' .. pack('>i8', at)}
  for i = over + 1, #ends do parts[#parts + 1] = pack('>i8I4', ends[i], counts[i]) end
  put(key, table.concat(parts), ends[#ends] + period)
  return granted, at, ends[#ends]
end

-- in_line returns the state of a rate if its tokens come behind those of nodes in line, how many are in line, and
-- the tokens that are set aside for them.
local function in_line(key, line, kind)
  local all, places, aside = redis.call('HGETALL', line), 0, {}
  if #all == 0 then return nil end
  local state = redis.call('GET', key)
  if state and string.byte(state) ~= kind then return nil end
  for i = 1, #all, 2 do
    if all[i] == '\255' then
      for pos = 1, #all[i + 1], 16 do
        local at, slot = unpack8('>i8i8', all[i + 1], pos)
        aside[#aside + 1] = {at, slot}
      end
    else
      local _, seen = unpack8('>i8i8', all[i + 1])
      if seen <= us and us - seen < WAIT_LIFE then places = places + 1 end
    end
  end
  return state or '', places, aside
end

-- lapse forgets tokens that were not taken in their time. Those of a window go back.
local function lapse(key, state, kind, aside)
  local ends = {}
  while #aside > 0 and (kind == SLIDING_WINDOW and aside[1][2] or aside[1][1] + TOKEN_LIFE) <= us do
    local slot = table.remove(aside, 1)[2]
    ends[slot] = (ends[slot] or 0) + 1
  end
  if kind ~= SLIDING_WINDOW or not next(ends) or #state < 9 then return end
  local parts = {string.sub(state, 1, 9)}
  for pos = 10, #state, 12 do
    local slot, n = unpack8('>i8I4', state, pos)
    n = n - (ends[slot] or 0)
    if n > 0 then parts[#parts + 1] = pack('>i8I4', slot, n) end
  end
  redis.call('SET', key, table.concat(parts), 'KEEPTTL')
end

local out = {us}
for i = 1, #KEYS / 2 do
  local key, line, a = KEYS[i * 2 - 1], KEYS[i * 2], {}
  for k = 1, 8 do a[k] = tonumber(ARGV[8 * i - 8 + k]) end
  local kind, count, period, most, wanted, limit, whole = a[1], a[2], a[3], a[4], a[5], us + a[6], a[7] == 1
  local function reserve(n, all)
    if kind == SLIDING_WINDOW then return window(key, count, period, n, limit, all, a[8]) end
    return bucket(key, count, period, most, n, limit, all)
  end
  local before, places, aside
  if whole and wanted > 0 then before, places, aside = in_line(key, line, kind) end
  if before then
    lapse(key, before, kind, aside)
    if places > #aside then
      local n, at, slot = reserve(places - #aside, false)
      for k = 0, n - 1 do
        aside[#aside + 1] = {math.max(us, kind == SLIDING_WINDOW and at or at + ceil(k * period / count)), slot or 0}
      end
    end
  end
  local granted, first = reserve(wanted, whole)
  if before and granted == 0 then
    if before == '' then redis.call('DEL', key) else redis.call('SET', key, before, 'KEEPTTL') end
  elseif before and #aside > 0 then
    local parts = {}
    for k, t in ipairs(aside) do parts[k] = pack('>i8i8', t[1], t[2]) end
    redis.call('HSET', line, '\255', table.concat(parts))
    redis.call('PEXPIRE', line, string.format('%d', math.max(10000, ceil((aside[#aside][1] - us) / 1000) + 10000)))
  elseif before then
    redis.call('HDEL', line, '\255')
  end
  out[#out + 1], out[#out + 2] = granted, first
end
return out
