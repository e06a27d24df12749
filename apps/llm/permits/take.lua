-- Takes a permit if it may be had now, and says "" - or why not.
--
-- KEYS[3]: a hash, the width the server was cut down to after it had refused a request.
-- KEYS[4]: a sorted set, the models people used, by time.
-- KEYS[5]: a sorted set, the people who were let in, by the time of the last one.
-- ARGV: name of the permit, the claim, the terms (both JSON, see slots.py).

-- So long it counts whose turn it was last, in ms.
local remembered = 600000
local name, claim, terms = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local person_waits = claim.lane == 'interactive'

-- An empty Redis that has just started may have lost permits: their holders come back within a second.
if redis.call('EXISTS', 'slots:kept') == 0 then
  local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  if tonumber(uptime) < terms.settle then return 'restarted' end
  redis.call('SET', 'slots:kept', 1)
end

local entries = living()
local since = entries[name] and entries[name].since or now
entries[name] = nil

-- What is in flight where this request wants to go.
local held, tokens, staying, people, rows, yielding = 0, 0, 0, 0, 0, 0
local removable, waiters, turns = {}, {}, {}
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
      if entry.lane == 'yielding' then
        yielding = yielding + 1
      else
        staying = staying + entry.tokens
      end
      if entry.lane == 'batch' or entry.lane == 'spare' then removable[#removable + 1] = entry end
    end
  end
end

-- People take turns: who has one request at the server, or waits with an earlier one, comes after all
-- who have none. Within a turn those come first who were let in longest ago, then who came first.
local ahead = 0
if person_waits then
  local mine = { name = name, since = since, owner = claim.owner }
  waiters[#waiters + 1] = mine
  local function came_first(a, b)
    if a.since ~= b.since then return a.since < b.since end
    return a.name < b.name
  end
  table.sort(waiters, came_first)
  local let_in = {}
  for _, entry in ipairs(waiters) do
    entry.turn = turns[entry.owner] or 0
    turns[entry.owner] = entry.turn + 1
    let_in[entry.owner] = let_in[entry.owner] or tonumber(redis.call('ZSCORE', KEYS[5], entry.owner)) or 0
    entry.let_in = let_in[entry.owner]
  end
  table.sort(waiters, function(a, b)
    if a.turn ~= b.turn then return a.turn < b.turn end
    if a.let_in ~= b.let_in then return a.let_in < b.let_in end
    return came_first(a, b)
  end)
  while waiters[ahead + 1] ~= mine do ahead = ahead + 1 end
end

-- A server that has refused requests gets fewer, and one more again every `recover` ms.
local width = terms.width
local cut = redis.call('HMGET', KEYS[3], 'width', 'since', 'until', 'reason')
if cut[1] then
  local grown = tonumber(cut[1]) + math.floor(math.max(0, now - tonumber(cut[2])) / terms.recover)
  if grown >= width then redis.call('DEL', KEYS[3]) else width = math.max(1, grown) end
end

-- The least is lost by closing what is only worth an idle slot, then what began last.
table.sort(removable, function(a, b)
  if a.lane ~= b.lane then return a.lane == 'spare' end
  return a.since > b.since
end)

local function take_back(entry)
  local taken = entry.name
  entry.lane, entry.name = 'yielding', nil
  keep(taken, entry)
  say('yield:' .. taken)
end

local function grant()
  claim.since, claim.ends = now, now + terms.lease
  keep(name, claim)
  redis.call('DEL', KEYS[1] .. ':held-back')
  if person_waits then
    redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - remembered)
    redis.call('ZADD', KEYS[5], now, claim.owner)
    redis.call('PEXPIRE', KEYS[5], remembered)
  end
  return ''
end

local function refuse(reason)
  if not person_waits and claim.lane == 'batch' then
    redis.call('SET', KEYS[1] .. ':held-back', reason, 'PX', 3000)
  end
  return reason
end

-- After a refusal nothing is sent for a while: it would be refused as well, and counted.
if cut[1] and cut[3] and tonumber(cut[3]) > now then
  return refuse('limit:' .. string.format('%d', cut[3] - now) .. ':' .. (cut[4] or ''))
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
  local resident = {}
  for _, model in ipairs(terms.resident) do resident[model] = true end
  for _, entry in pairs(entries) do use(entry.scope) end
  if not person_waits then
    local lately = redis.call('ZRANGEBYSCORE', KEYS[4], now - terms.keep, '+inf', 'WITHSCORES')
    for i = 1, #lately, 2 do
      if resident[lately[i]] or tonumber(lately[i + 1]) > now - terms.fresh then use(lately[i]) end
    end
  end
end
local is_crowded = models_in_use >= terms.at_once

-- Whether this request would make the server stop another model than its own.
local function unloads(entry)
  return terms.swaps and not terms.loaded and is_crowded and entry.scope ~= claim.scope
end

if person_waits then
  redis.call('ZADD', KEYS[2], now, claim.person)
  redis.call('PEXPIRE', KEYS[2], terms.idle + forgotten)
  if terms.swaps and terms.serves then
    redis.call('ZADD', KEYS[4], now, claim.scope)
    redis.call('PEXPIRE', KEYS[4], math.max(terms.keep, 1))
  end
  local in_the_way = false
  for _, entry in pairs(entries) do
    if unloads(entry) then
      if entry.lane == 'batch' or entry.lane == 'spare' then take_back(entry) end
      in_the_way = in_the_way or entry.lane == 'yielding'
    end
  end
  if not in_the_way and width - held > ahead and (held == 0 or fits(tokens)) then return grant() end

  local missing = ahead + 1 - (width - held) - yielding
  for _, entry in ipairs(removable) do
    if entry.lane ~= 'yielding' and (missing > 0 or not fits(staying)) then
      missing, staying = missing - 1, staying - entry.tokens
      take_back(entry)
    end
  end
  if since == now then count('waited', 1) end
  claim.lane, claim.since, claim.ends = 'waiting', since, now + terms.patience
  keep(name, claim)
  return 'slots'
end

-- Nobody's time is lost here, so people come first: those who wait, and those who may ask again.
local waiting = 0
for _, entry in pairs(entries) do
  if entry.lane == 'waiting' and (entry.scope == claim.scope or unloads(entry)) then waiting = waiting + 1 end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - terms.idle)
local active = redis.call('ZCARD', KEYS[2])
local reserved = math.max(people, math.min(active, width - 1))

if terms.swaps and not terms.loaded then
  if claim.lane == 'spare' then return 'model' end
  if is_crowded then
    local names = {}
    for model in pairs(in_use) do names[#names + 1] = model end
    table.sort(names)
    return refuse('model:' .. table.concat(names, ', '))
  end
end
if claim.lane == 'spare' then
  if held + waiting >= width or not fits(tokens) then return 'slots' end
  return grant()
end
if held + waiting >= width then
  for _, entry in ipairs(removable) do
    if entry.lane == 'spare' then
      take_back(entry)
      break
    end
  end
  return refuse('slots')
end
if rows + reserved >= width then return refuse('people') end
if held > 0 and (waiting > 0 and terms.pool > 0 or not fits(tokens)) then return refuse('tokens') end
return grant()
