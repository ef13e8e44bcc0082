#!lua flags=allow-oom
-- take: take what tasks need of the limits of their topic, all of it or nothing. store/limit computes the same;
-- change both.
--
-- KEYS  1 calls of the topic (hash node -> call, us, answer)
--       then three per rate: its state (see reserve.lua), those in line, turns; the first is the topic's
--       then three per cap: permits (zset holder -> until ms), those in line, turns; the first is the topic's,
--       the second the namespace's
--       those in line: hash name -> since us, seen us; of a rate under \255, too, the tokens that are set aside,
--       each its moment and the end of its slot
--       turns: hash t -> since when something is there for the first in line, b -> since when shares are counted,
--       n and a name -> how many it got since then
-- ARGV  1 call or 0   2 node   3 its name in the line of the namespace   4 until ms   5 horizon us
--       6 1 dead letters   7 rates   8 caps   9 permits of the namespace that are taken already, or -1
--       10 kind, count, period us, most at once of the topic's rate   14 of the rate of keys
--       18 most permits of the topic   19 of the namespace   20 of a key   21 life of a window's token, us
--       then number of caps with ends, and per each: cap, number of holders, the holders
--       then number of tokens that go back, and per each: rate, kind, from us, to us
--       then number of lines to leave, and per each: 1 rate or 0 cap, its number
--       then number of holders, and the holders
--       then number of wants, and per each: rate or 0, cap or 0
--
-- returns one text: us, number of wants that were looked at, and for each its status as of store.TakeStatus, then
--           1 granted     per rate that it is under, the key's first: from us, to us
--           2 no token    1 of the key or 2 of the topic, us of when to ask again
--           3 no permit   1 of the key, 2 of the topic or 3 of the namespace, us of when to ask again
--           4 over        1 of the key or 2 of the topic
--         then number of notices, and for each: 1 rate or 0 cap, its number, after us, name
--         then number of tokens that could not go back, and are lost

local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local ms = math.floor(us / 1000)
local pack, unpack8, floor, ceil, min, max = struct.pack, struct.unpack, math.floor, math.ceil, math.min, math.max
local call, node, in_namespace, till = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local function num(i) return tonumber(ARGV[i]) end
local ahead, dead, rate_count, taken_before = num(5), ARGV[6] == '1', num(7), num(9)
local limit = us + ahead
local ASIDE = '\255'
local TURN, SHARE, NO_SHARE = LINE_TURN, SHARE_PERIOD, 1073741824
local function whole(n) return string.format('%.0f', n) end

local calls = unpack(KEYS, 1, 1)
if call ~= '0' then
  local last = redis.call('HGET', calls, node)
  if last then
    local was, at, from = string.match(last, '^(%d+) (%d+) ()')
    if us - tonumber(at) < CALL_LIFE then
      if was == call then return string.sub(last, from) end
      -- Numbers of calls have 64 bits: what is before their last twelve digits is compared as text.
      local behind = tonumber(string.sub(was, -12)) - tonumber(string.sub(call, -12))
      if string.sub(was, 1, -13) == string.sub(call, 1, -13) and behind > 0 and behind <= LATE_CALLS then
        return pack('>i8I2I2I2', us, 0, 0, 0)
      end
    end
  end
end

-- rate_key and cap_key are the first key of a rate or cap.
local function rate_key(i) return 3 * i - 1 end
local function cap_key(i) return 3 * (rate_count + i) - 1 end

-- line: open finds who is in line and what is kept for whom, see limit/line.go. What is to come was written down by a clock
-- that was set back since.
local function open(v, key, name)
  v.line, v.turns, v.name, v.took = KEYS[key + 1], KEYS[key + 2], name, 0
  v.order, v.aside = {}, {}
  local all, gone = redis.call('HGETALL', v.line), {}
  for i = 1, #all, 2 do
    if all[i] == ASIDE then
      for pos = 1, #all[i + 1], 16 do
        local at, slot = unpack8('>i8i8', all[i + 1], pos)
        v.aside[#v.aside + 1] = {at, slot}
      end
    else
      local since, seen = unpack8('>i8i8', all[i + 1])
      if seen > us or us - seen >= WAIT_LIFE then gone[#gone + 1] = all[i] else v.order[#v.order + 1] = {all[i], since} end
    end
  end
  if #gone > 0 then redis.call('HDEL', v.line, unpack(gone)) end
  if #v.order > 1 then
    table.sort(v.order, function(a, b)
      if a[2] ~= b[2] then return a[2] < b[2] end
      return a[1] < b[1]
    end)
  end
end

local function view(v)
  local places = #v.order
  v.place, v.others, v.passed, v.share = places, places, 0, NO_SHARE
  for i, p in ipairs(v.order) do if p[1] == v.name then v.mine, v.place, v.others = i, i - 1, places - 1 end end
  v.turn, v.began, v.got = 0, 0, {}
  if places > 0 then
    local all = redis.call('HGETALL', v.turns)
    for i = 1, #all, 2 do
      local n = tonumber(all[i + 1])
      if all[i] == 't' then v.turn = n elseif all[i] == 'b' then v.began = n else v.got[string.sub(all[i], 2)] = n end
    end
  end
  if v.there <= 0 or places == 0 then v.turn = 0 elseif v.turn == 0 or v.turn > us then v.turn = us end
  if v.turn ~= 0 then v.passed = floor((us - v.turn) / TURN) end
  if v.began > us or us - v.began > SHARE then v.began, v.got = us, {} end
  if v.others > 0 and v.passed < 2 then
    local all = v.there + (v.got[v.name] or 0)
    for _, p in ipairs(v.order) do if p[1] ~= v.name then all = all + (v.got[p[1]] or 0) end end
    v.share = floor((all + v.others) / (v.others + 1)) - (v.got[v.name] or 0)
  end
end

local function kept(v) return v.passed < 2 and max(0, v.place - v.passed) or 0 end
local function take(v)
  v.there, v.share, v.took = v.there - 1, v.share - 1, v.took + 1
  v.place, v.passed = v.others, 0
end

-- close gives the node its place, and adds whom to tell.
local notices = {}
local function close(v, is_rate, i)
  local mine, had = v.mine, #v.order
  local function leave()
    redis.call('HDEL', v.line, v.name)
    table.remove(v.order, mine)
  end
  local function join()
    redis.call('HSET', v.line, v.name, pack('>i8i8', us, us))
    v.order[#v.order + 1] = {v.name, us}
  end
  if v.refused and v.took > 0 then
    if mine then table.remove(v.order, mine) end
    join()
  elseif v.refused and mine then
    redis.call('HSET', v.line, v.name, pack('>i8i8', v.order[mine][2], us))
  elseif v.refused then
    join()
  elseif v.asked and mine then
    leave()
    v.turn = 0
    v.tell = v.tell or v.took == 0
  end
  local places = #v.order
  if v.took > 0 or v.there <= 0 or places == 0 then v.turn = 0 end
  if v.there > 0 and places > 0 and v.turn == 0 then v.turn = us end
  if places > 0 then
    if v.took > 0 and v.others > 0 then v.got[v.name] = (v.got[v.name] or 0) + v.took end
    local fields = {'t', whole(v.turn), 'b', whole(v.began)}
    for name, n in pairs(v.got) do fields[#fields + 1], fields[#fields + 2] = 'n' .. name, whole(n) end
    redis.call('DEL', v.turns)
    redis.call('HSET', v.turns, unpack(fields))
    redis.call('PEXPIRE', v.turns, 10000)
    local last = v.aside[#v.aside]
    redis.call('PEXPIRE', v.line, whole(max(10000, last and ceil((last[1] - us) / 1000) + 10000 or 0)))
  elseif had > 0 then
    redis.call('DEL', v.turns)
  end
  if v.there <= 0 or is_rate and not v.tell then return end
  for at, p in ipairs(v.order) do
    if p[1] ~= v.name then
      notices[#notices + 1] = pack('>BI2I4I2', is_rate and 1 or 0, i, min(2, max(0, at - v.there)) * TURN, #p[1]) .. p[1]
    end
  end
end

local opened, rates, caps = {}, {}, {}

local function cap(i)
  local v = caps[i]
  if v ~= nil then return v end
  local most = num(i == 1 and 18 or i == 2 and 19 or 20)
  if most == 0 then
    caps[i] = false
    return false
  end
  local key = cap_key(i)
  v = {permits = KEYS[key], add = {}}
  open(v, key, i == 2 and in_namespace or node)
  v.used = redis.call('ZCARD', v.permits)
  if #v.order > 0 or v.used >= most then
    v.used = v.used - redis.call('ZREMRANGEBYSCORE', v.permits, '-inf', ms)
    v.swept = true
  end
  v.there = most - v.used
  view(v)
  caps[i] = v
  opened[#opened + 1] = {v, false, i}
  return v
end

-- has reports whether the node may have one more permit.
local function has(v)
  if v.there <= 0 and not v.swept then
    local ended = redis.call('ZREMRANGEBYSCORE', v.permits, '-inf', ms)
    v.there, v.used, v.swept = v.there + ended, v.used - ended, true
  end
  return v.there > kept(v) and v.share > 0
end

-- uncount gives a token back to its slot of a window.
local function uncount(v, slot)
  for i = 1, #v.ends do
    if v.ends[i] == slot then
      v.counts[i] = v.counts[i] - 1
      if v.counts[i] == 0 then
        table.remove(v.ends, i)
        table.remove(v.counts, i)
      end
      v.changed = true
      return true
    end
  end
  return false
end

-- read reads the state of a rate.
local function read(v)
  local state = redis.call('GET', v.key)
  v.last, v.ends, v.counts = 0, {}, {}
  if not state then return end
  v.kind = string.byte(state)
  if v.kind == SLIDING_WINDOW and #state >= 9 then
    v.last = unpack8('>i8', state, 2)
    for pos = 10, #state, 12 do
      local slot, n = unpack8('>i8I4', state, pos)
      v.ends[#v.ends + 1], v.counts[#v.counts + 1] = slot, n
    end
  elseif v.kind == 0 and #state == 25 then
    v.last, v.was_period, v.was_count = unpack8('>i8i8i8', state, 2)
  end
end

local function windowed(v)
  local parts = {'\1' .. pack('>i8', v.last)}
  for i = 1, #v.ends do parts[#parts + 1] = pack('>i8I4', v.ends[i], v.counts[i]) end
  return table.concat(parts)
end

local function bucketed(v) return '\0' .. pack('>i8i8i8', v.last, v.was_period, v.was_count) end

local function rate(i)
  local v = rates[i]
  if v ~= nil then return v end
  local a = i == 1 and 10 or 14
  local kind, count, period, most = num(a), num(a + 1), num(a + 2), num(a + 3)
  if count == 0 then
    rates[i] = false
    return false
  end
  local key = rate_key(i)
  v = {key = KEYS[key], count = count, period = period, most = most, window = kind == SLIDING_WINDOW, given = 0, there = 0, usable = 0}
  open(v, key, node)
  read(v)
  local had = #v.aside
  if v.kind ~= kind then
    v.last, v.ends, v.counts, v.was_period, v.was_count = 0, {}, {}, nil, nil
    if v.kind then v.aside = {} end
  end
  while #v.aside > 0 and (v.window and v.aside[1][2] or v.aside[1][1] + TOKEN_LIFE) <= us do
    if v.window then uncount(v, v.aside[1][2]) end
    table.remove(v.aside, 1)
  end
  v.less = #v.aside < had
  local farthest = max(limit, us + MAX_AHEAD)
  if v.window then
    local at, used = us, 0
    if v.last > farthest + period then
      v.last, v.ends, v.counts = us, {}, {}
    else
      at = max(us, v.last)
    end
    while #v.ends > 0 and v.ends[1] + period <= at do
      table.remove(v.ends, 1)
      table.remove(v.counts, 1)
    end
    for _, n in ipairs(v.counts) do used = used + n end
    v.over = 0
    while v.over < #v.ends and count - used < 1 do
      v.over = v.over + 1
      used = used - v.counts[v.over]
      at = max(at, v.ends[v.over] + period)
    end
    v.next = at
    if at <= limit then v.there = count - used end
    local slot = max(1000, floor(period / 64))
    local from = at + max(0, num(21) - slot)
    v.slot = from - from % slot + 2 * slot
    if #v.ends > v.over then v.slot = max(v.slot, v.ends[#v.ends]) end
  else
    local at = v.last
    if at > us and v.was_count and (v.was_period ~= period or v.was_count ~= count) then
      at = us + floor((at - us) * v.was_count / v.was_period * period / count)
      v.changed = true -- also if nothing is taken: who asks again is told of the same moment
    end
    if at > farthest + ceil(most * period / count) then at = us end
    v.next = max(at, us - ceil((most - 1) * period / count))
    if v.next <= limit then v.there = floor((limit - v.next) * count / period) + 1 end
  end
  while v.usable < #v.aside and v.aside[v.usable + 1][1] <= limit do v.usable = v.usable + 1 end
  v.there = v.there + v.usable
  view(v)
  rates[i] = v
  opened[#opened + 1] = {v, true, i}
  return v
end

local function span(v, n) return ceil(n * v.period / v.count) end

-- token takes one, and returns where it is from and to.
local function token(v)
  take(v)
  if v.usable > 0 then
    v.usable, v.less = v.usable - 1, true
    local a = table.remove(v.aside, 1)
    return a[1], a[2]
  end
  v.given = v.given + 1
  if v.window then return 0, v.slot end
  return v.next + span(v, v.given - 1), v.next + span(v, v.given)
end

-- again is when a node that lacks a token asks again.
local function again(v)
  local at
  if not v.window then at = v.next + span(v, v.given)
  elseif v.given == 0 then at = v.next
  else at = (v.ends[v.over + 1] or v.slot) + v.period end
  if v.aside[1] then at = min(at, v.aside[1][1]) end
  at = at - ahead
  if v.there > 0 then at = us + 2 * TURN end -- kept for others, who may not come
  if floor(v.period * 1000 / v.count) < TOKEN_HORIZON * 500 then at = max(at, us + TOKEN_HORIZON / 2) end
  return at
end

local function write(v)
  if v.less then
    if #v.aside == 0 then
      redis.call('HDEL', v.line, ASIDE)
    else
      local parts = {}
      for i, a in ipairs(v.aside) do parts[i] = pack('>i8i8', a[1], a[2]) end
      redis.call('HSET', v.line, ASIDE, table.concat(parts))
    end
  end
  if v.given == 0 and not v.changed then return end
  local rests
  if v.window then
    if v.given > 0 then
      for _ = 1, v.over do
        table.remove(v.ends, 1)
        table.remove(v.counts, 1)
      end
      v.last = v.next
      if v.ends[#v.ends] == v.slot then
        v.counts[#v.ends] = v.counts[#v.ends] + v.given
      else
        v.ends[#v.ends + 1], v.counts[#v.counts + 1] = v.slot, v.given
      end
    end
    rests = (v.ends[#v.ends] or us) + v.period
  else
    v.last, v.was_period, v.was_count = v.next + span(v, v.given), v.period, v.count
    rests = v.last + ceil((v.most - 1) * v.period / v.count)
  end
  redis.call('SET', v.key, v.window and windowed(v) or bucketed(v), 'PX', whole(ceil(max(0, rests - us) / 1000) + 1000))
end

-- What ends: permits, tokens that go back, places.
local arg, ended, back, left, lost = 23, {}, {}, {}, 0
for g = 1, num(22) do
  local i, n = num(arg), num(arg + 1)
  for from = arg + 2, arg + 1 + n, 1000 do redis.call('ZREM', KEYS[cap_key(i)], unpack(ARGV, from, min(from + 999, arg + 1 + n))) end
  ended[g] = i
  arg = arg + 2 + n
end
for n = 1, num(arg) do
  local at = arg + 4 * n - 3
  local i, kind, from, to = num(at), num(at + 1), num(at + 2), num(at + 3)
  local v, a = {key = KEYS[rate_key(i)]}, i == 1 and 10 or 14
  read(v)
  if v.kind == kind then
    local state
    if kind == SLIDING_WINDOW then
      state = to + num(a + 2) > us and uncount(v, to) and windowed(v)
    elseif to + ceil((num(a + 3) - 1) * num(a + 2) / max(1, num(a + 1))) > us then
      if v.last == to then
        v.last = from
        state = bucketed(v)
      elseif v.last > to then
        lost = lost + 1
      end
    end
    if state then
      redis.call('SET', v.key, state, 'KEEPTTL')
      back[#back + 1] = i
    end
  end
end
arg = arg + 1 + 4 * num(arg)
for n = 1, num(arg) do
  local is_rate, i = ARGV[arg + 2 * n - 1] == '1', num(arg + 2 * n)
  local key = is_rate and rate_key(i) or cap_key(i)
  if redis.call('HDEL', KEYS[key + 1], not is_rate and i == 2 and in_namespace or node) == 1 then
    redis.call('HDEL', KEYS[key + 2], 't')
    left[#left + 1] = {is_rate, i}
  end
end
arg = arg + 1 + 2 * num(arg)
for _, i in ipairs(ended) do cap(i) end
for _, i in ipairs(back) do
  local v = rate(i)
  if v then v.tell = true end
end
for _, l in ipairs(left) do
  local v = l[1] and rate(l[2]) or not l[1] and cap(l[2])
  if v and l[1] then v.tell = true end
end

-- The wants.
local room, holder = num(arg), arg
local first_want = arg + room + 1
local wants, granted, out = num(first_want), 0, {}

-- lacks looks at what a want is under, and returns the answer to one that lacks something; else nil and these.
local function lacks(rate_of, cap_of)
  local under, needs = {}, {}
  for kind = 1, 3 do
    local i = kind == 1 and cap_of or kind - 1
    if kind == 3 and taken_before >= 0 then
      if granted >= taken_before then return pack('>BBi8', NO_PERMIT, 3, us + NOTICE_WAIT) end
    elseif i > 0 then
      local v = cap(i)
      if v then
        v.asked = true
        if not has(v) then
          v.refused = true
          return pack('>BBi8', NO_PERMIT, kind, us + (v.there > 0 and 2 * TURN + 1000 or NOTICE_WAIT))
        end
        under[#under + 1] = v
      end
    end
  end
  for kind = 1, 2 do
    local i = kind == 1 and rate_of or 1
    local v = i > 0 and rate(i)
    if v then
      v.asked = true
      if dead and v.there <= 0 then return pack('>BB', OVER_RATE, kind) end
      if not dead and not (v.there > kept(v) and v.share > 0) then
        v.refused = true
        return pack('>BBi8', NO_TOKEN, kind, again(v))
      end
      needs[#needs + 1] = v
    end
  end
  return nil, under, needs
end

for w = 1, wants do
  if granted == room then break end
  local at = first_want + 2 * w - 1
  local refused, under, needs = lacks(num(at), num(at + 1))
  if not refused then
    refused = pack('>B', GRANTED)
    for _, v in ipairs(needs) do refused = refused .. pack('>i8i8', token(v)) end
    granted = granted + 1
    for _, v in ipairs(under) do
      take(v)
      v.add[#v.add + 1], v.add[#v.add + 2] = till, ARGV[holder + granted]
    end
  end
  out[w] = refused
end

for _, o in ipairs(opened) do
  local v, is_rate, i = o[1], o[2], o[3]
  if is_rate then
    write(v)
  elseif #v.add > 0 then
    for from = 1, #v.add, 2000 do redis.call('ZADD', v.permits, unpack(v.add, from, min(from + 1999, #v.add))) end
    local expires = whole(till + 1000)
    if v.used == 0 then redis.call('PEXPIREAT', v.permits, expires) else redis.call('PEXPIREAT', v.permits, expires, 'GT') end
  end
  close(v, is_rate, i)
end

local answer = pack('>i8I2', us, #out) .. table.concat(out) .. pack('>I2', #notices) .. table.concat(notices) .. pack('>I2', lost)
if call ~= '0' then
  redis.call('HSET', calls, node, call .. ' ' .. whole(us) .. ' ' .. answer)
  redis.call('PEXPIRE', calls, CALL_LIFE / 1000)
end
return answer
