-- Takes a permit if it may be had now, and says "" - or why not.
--
-- KEYS[3]: a hash, the width the server was cut down to after it had refused a request.
-- KEYS[4]: a sorted set, the models people used, by time.
-- ARGV: name of the permit, the claim, the terms (both JSON, see slots.py).

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
local held, tokens, staying, people, rows, yielding, ahead = 0, 0, 0, 0, 0, 0, 0
local removable = {}
for other, entry in pairs(entries) do
  entry.name = other
  if entry.scope == claim.scope then
    if entry.lane == 'waiting' then
      if entry.since < since then ahead = ahead + 1 end
    else
      held, tokens = held + 1, tokens + entry.tokens
      if entry.lane == 'interactive' then people = people + 1 end
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
