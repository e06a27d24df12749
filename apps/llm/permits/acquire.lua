-- Grants a permit if a slot is free now and returns "", else the reason of the refusal: of a person
-- also how many are before them.
--
-- KEYS[3]: a hash, the slots left after the server has refused a request.
-- KEYS[4]: a sorted set, the models people used, by time.
-- KEYS[5]: a sorted set, the people who got a slot, by the time of their last one.
-- ARGV: name of the permit, the claim, the terms (both JSON, see terms.py).

-- For this many ms it counts who got a slot last.
local turns_kept = 600000
local name, claim, terms = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local person_waits = claim.lane == 'interactive'

-- An empty Redis that has just started may have lost permits: their holders come back within a second.
if redis.call('EXISTS', 'slots:kept') == 0 then
  local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  if tonumber(uptime) < terms.warmup then return 'restarted' end
  redis.call('SET', 'slots:kept', 1)
end

local entries = living()
local since = entries[name] and entries[name].since or now
entries[name] = nil

-- The permits in flight for the slots that this request wants.
local held, tokens, staying, people, rows, revoked = 0, 0, 0, 0, 0, 0
local revocable, waiters, turns = {}, {}, {}
for other, entry in pairs(entries) do
  entry.name = other
  if entry.scope == claim.scope then
    if entry.lane == 'waiting' then
      waiters[#waiters + 1] = entry
    else
      held, tokens = held + 1, tokens + entry.tokens
      if entry.lane == 'interactive' then
        people = people + 1
        turns[entry.owner] = (turns[entry.owner] or 0) + 1
      end
      if entry.lane == 'batch' then rows = rows + 1 end
      if entry.lane == 'revoked' then
        revoked = revoked + 1
      else
        staying = staying + entry.tokens
      end
      if entry.lane == 'batch' or entry.lane == 'idle' then revocable[#revocable + 1] = entry end
    end
  end
end

-- People take turns: someone with a request at the server, or with an earlier one waiting, comes after
-- all who have none. Within a turn, the longest time since the last slot comes first, then the first to
-- arrive.
local ahead = 0
if person_waits then
  local mine = { name = name, since = since, owner = claim.owner }
  waiters[#waiters + 1] = mine
  local function arrived_first(a, b)
    if a.since ~= b.since then return a.since < b.since end
    return a.name < b.name
  end
  table.sort(waiters, arrived_first)
  local last_slot = {}
  for _, entry in ipairs(waiters) do
    entry.turn = turns[entry.owner] or 0
    turns[entry.owner] = entry.turn + 1
    last_slot[entry.owner] = last_slot[entry.owner] or tonumber(redis.call('ZSCORE', KEYS[5], entry.owner)) or 0
    entry.last_slot = last_slot[entry.owner]
  end
  table.sort(waiters, function(a, b)
    if a.turn ~= b.turn then return a.turn < b.turn end
    if a.last_slot ~= b.last_slot then return a.last_slot < b.last_slot end
    return arrived_first(a, b)
  end)
  while waiters[ahead + 1] ~= mine do ahead = ahead + 1 end
end

-- A server that has refused requests gets fewer, and one more again every `recover` ms.
local slots = terms.slots
local limit = redis.call('HMGET', KEYS[3], 'slots', 'since', 'until', 'reason')
if limit[1] then
  local grown = tonumber(limit[1]) + math.floor(math.max(0, now - tonumber(limit[2])) / terms.recover)
  if grown >= slots then redis.call('DEL', KEYS[3]) else slots = math.max(1, grown) end
end

-- Least is lost by closing requests of the lane idle, then the one that started last.
table.sort(revocable, function(a, b)
  if a.lane ~= b.lane then return a.lane == 'idle' end
  return a.since > b.since
end)

local function revoke(entry)
  local name_of_entry = entry.name
  entry.lane, entry.name = 'revoked', nil
  store(name_of_entry, entry)
  notify('revoke:' .. name_of_entry)
end

local function grant()
  claim.since, claim.ends = now, now + terms.lease
  store(name, claim)
  redis.call('DEL', KEYS[1] .. ':wait-reason')
  if person_waits then
    redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - turns_kept)
    redis.call('ZADD', KEYS[5], now, claim.owner)
    redis.call('PEXPIRE', KEYS[5], turns_kept)
  end
  return ''
end

local function refuse(reason)
  if not person_waits and claim.lane == 'batch' then
    redis.call('SET', KEYS[1] .. ':wait-reason', reason, 'PX', 3000)
  end
  return reason
end

-- After a refusal nothing is sent for a while: it would be refused too, and counted.
if limit[1] and limit[3] and tonumber(limit[3]) > now then
  return refuse('limit:' .. string.format('%d', limit[3] - now) .. ':' .. (limit[4] or ''))
end

local function fits(more)
  return terms.pool == 0 or more + claim.tokens <= terms.pool
end

-- A server that loads models as they are asked for frees the one that was used least recently, when
-- it holds as many as it may: this request can be in the way of others only where that many other
-- models are in use. Those count that are asked for now and those that people used lately, as long as
-- they are in memory. What is known of that may be some seconds old, so the newest count anyhow.
local in_use, models_in_use = {}, 0
local function use(model)
  if model ~= claim.scope and not in_use[model] then
    in_use[model], models_in_use = true, models_in_use + 1
  end
end
if terms.swaps and not terms.loaded then
  local loaded = {}
  for _, model in ipairs(terms.loaded_models) do loaded[model] = true end
  for _, entry in pairs(entries) do use(entry.scope) end
  if not person_waits then
    local recent = redis.call('ZRANGEBYSCORE', KEYS[4], now - terms.keep_model, '+inf', 'WITHSCORES')
    for i = 1, #recent, 2 do
      if loaded[recent[i]] or tonumber(recent[i + 1]) > now - terms.facts_age then use(recent[i]) end
    end
  end
end
local is_crowded = models_in_use >= terms.models_at_once

-- True if this request would make the server unload the entry's model.
local function unloads(entry)
  return terms.swaps and not terms.loaded and is_crowded and entry.scope ~= claim.scope
end

if person_waits then
  redis.call('ZADD', KEYS[2], now, claim.person)
  redis.call('PEXPIRE', KEYS[2], terms.active + forget)
  if terms.swaps and terms.listed then
    redis.call('ZADD', KEYS[4], now, claim.scope)
    redis.call('PEXPIRE', KEYS[4], math.max(terms.keep_model, 1))
  end
  local in_the_way = false
  for _, entry in pairs(entries) do
    if unloads(entry) then
      if entry.lane == 'batch' or entry.lane == 'idle' then revoke(entry) end
      in_the_way = in_the_way or entry.lane == 'revoked'
    end
  end
  local granted = not in_the_way and slots - held > ahead and (held == 0 or fits(tokens))
  -- Requests are closed for this one and those before it; also for those behind it, where it gets the
  -- slot that was freed for them.
  local missing = (granted and #waiters or ahead + 1) - (slots - held) - revoked
  for _, entry in ipairs(revocable) do
    if entry.lane ~= 'revoked' and (missing > 0 or not granted and not fits(staying)) then
      missing, staying = missing - 1, staying - entry.tokens
      revoke(entry)
    end
  end
  if granted then return grant() end
  if since == now then count('waited', 1) end
  claim.lane, claim.since, claim.ends = 'waiting', since, now + terms.waiter
  store(name, claim)
  -- Who asked was not the one whose turn it is: those are told.
  for i = 1, math.min(slots - held, ahead) do notify('next:' .. waiters[i].name) end
  return 'slots:' .. ahead
end

-- Nobody waits for a row, so people come first: those who wait, and those who may ask again.
local waiting = 0
for _, entry in pairs(entries) do
  if entry.lane == 'waiting' and (entry.scope == claim.scope or unloads(entry)) then waiting = waiting + 1 end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - terms.active)
local active = redis.call('ZCARD', KEYS[2])
local reserved = math.max(people, math.min(active, slots - 1))

if terms.swaps and not terms.loaded then
  if claim.lane == 'idle' then return 'model' end
  if is_crowded then
    local names = {}
    for model in pairs(in_use) do names[#names + 1] = model end
    table.sort(names)
    return refuse('model:' .. table.concat(names, ', '))
  end
end
if claim.lane == 'idle' then
  if held + waiting >= slots or not fits(tokens) then return 'slots' end
  return grant()
end
if held + waiting >= slots then
  for _, entry in ipairs(revocable) do
    if entry.lane == 'idle' then
      revoke(entry)
      break
    end
  end
  return refuse('slots')
end
if rows + reserved >= slots then return refuse('people') end
if held > 0 and (waiting > 0 and terms.pool > 0 or not fits(tokens)) then return refuse('tokens') end
return grant()
