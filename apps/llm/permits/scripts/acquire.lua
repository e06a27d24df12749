-- Grants a permit if a slot is free now and returns "", else the reason of the refusal, mostly with how
-- many are before it.
--
-- KEYS[3]: a hash, the slots left after the server has refused a request.
-- KEYS[4]: a sorted set, the models people used, by time.
-- KEYS[5]: a sorted set, the people and keys of each lane who got a slot, by the time of their last one.
-- KEYS[6]: a hash, the beginning of the prompt that each key of each person sent last.
-- KEYS[7], KEYS[8]: see models.lua.
-- ARGV: name of the permit, the claim, the terms (both JSON, see terms.py).

-- For this many ms it counts who got a slot last.
local turns_kept = 600000
local name, claim, terms = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local lane = claim.lane
local person_waits = lane == 'interactive'

-- An empty Redis that has just started may have lost permits: their holders come back within a second.
if redis.call('EXISTS', 'slots:kept') == 0 then
  local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  if tonumber(uptime) < terms.warmup then return 'restarted' end
  redis.call('SET', 'slots:kept', 1)
end

local entries = living()
local since = entries[name] and entries[name].since or now
entries[name] = nil
claim.aged = (lane == 'batch' or lane == 'idle') and now - since > terms.patience
  and now - (tonumber(redis.call('ZSCORE', KEYS[5], person_of(lane, claim))) or 0) > terms.patience

-- The permits in flight for the slots that this request wants: of people, of agents and batch work.
local held, tokens, staying, people, others, fixed, revoked = 0, 0, 0, 0, 0, 0, 0
local revocable, waiters, turns = {}, {}, {}
for other, entry in pairs(entries) do
  entry.name = other
  if entry.scope == claim.scope then
    if entry.lane == 'waiting' or entry.lane == 'queued' then
      entry.wants = entry.wants or 'interactive'
      waiters[#waiters + 1] = entry
    else
      held, tokens = held + 1, tokens + entry.tokens
      if entry.lane == 'revoked' then
        revoked = revoked + 1
      else
        staying = staying + entry.tokens
        take_turn(turns, person_of(entry.lane, entry))
        take_turn(turns, key_of(entry.lane, entry))
      end
      if entry.lane == 'interactive' then people = people + 1 end
      if entry.lane == 'agent' or entry.lane == 'batch' then others = others + 1 end
      if entry.lane == 'batch' or entry.lane == 'idle' then
        if rank_of(entry.lane, entry.aged) > rank[lane] then
          revocable[#revocable + 1] = entry
        end
      end
      if entry.lane == 'agent' or entry.lane == 'batch' and entry.aged then fixed = fixed + 1 end
    end
  end
end

local memory = {}
if terms.swaps then
  read_model_uses(entries)
  memory = models_in_memory(terms)
end
local is_loaded = not terms.swaps or memory[claim.scope] or false
-- Programs take turns with models, those of people too; someone at the workbench gets theirs at once.
local takes_turns = lane == 'agent' or person_waits and claim.share ~= nil and claim.share ~= ''

local ahead, people_waiting = 0, 0
local mine = { name = name, since = since, owner = claim.owner, share = claim.share, prefix = claim.prefix,
  wants = lane, aged = claim.aged }
waiters[#waiters + 1] = mine
sort_queue(waiters, turns, terms.grouped)
while waiters[ahead + 1] ~= mine do ahead = ahead + 1 end
for _, entry in ipairs(waiters) do
  if entry.wants == 'interactive' then people_waiting = people_waiting + 1 end
end

-- A server that has refused requests gets fewer, and one more again every `recover` ms.
local slots = terms.slots
local limit = redis.call('HMGET', KEYS[3], 'slots', 'since', 'until', 'reason')
if limit[1] then
  local grown = tonumber(limit[1]) + math.floor(math.max(0, now - tonumber(limit[2])) / terms.recover)
  if grown >= slots then redis.call('DEL', KEYS[3]) else slots = math.max(1, grown) end
end

-- Least is lost by closing requests of the lane idle, then those that go on where they were, then the
-- one that started last.
table.sort(revocable, function(a, b)
  if a.lane ~= b.lane then return a.lane == 'idle' end
  local a_loses, b_loses = a.loses_work == true, b.loses_work == true
  if a_loses ~= b_loses then return b_loses end
  return a.since > b.since
end)

local function revoke(entry)
  local name_of_entry = entry.name
  entry.lane, entry.name = 'revoked', nil
  store(name_of_entry, entry)
  notify('revoke:' .. name_of_entry)
end

local function grant()
  if terms.swaps then forget_model_wait(claim) end
  if terms.swaps and terms.listed then note_granted(claim.scope, lane, takes_turns, is_loaded) end
  claim.since, claim.ends = now, now + terms.lease
  store(name, claim)
  redis.call('DEL', KEYS[1] .. ':wait-reason')
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now - turns_kept)
  redis.call('ZADD', KEYS[5], now, person_of(lane, claim), now, key_of(lane, claim))
  redis.call('PEXPIRE', KEYS[5], turns_kept)
  if claim.prefix and claim.prefix ~= '' then
    redis.call('HSET', KEYS[6], key_of(lane, claim), claim.prefix)
    redis.call('PEXPIRE', KEYS[6], turns_kept)
  end
  return ''
end

local function refuse(reason)
  if lane == 'batch' then redis.call('SET', KEYS[1] .. ':wait-reason', reason, 'PX', 3000) end
  return reason
end

-- Keeps the request's place in the queue. Those of batch and idle work are not shown as waiting.
local function wait()
  if lane == 'idle' and not claim.waits then return end
  if terms.swaps then forget_model_wait(claim) end
  claim.lane = (person_waits or lane == 'agent') and 'waiting' or 'queued'
  claim.wants, claim.since, claim.ends = lane, since, now + terms.waiter
  store(name, claim)
end

-- Tells those before it that slots are free: who asked was not the one whose turn it is.
local function notify_ahead(free)
  for i = 1, math.min(free, ahead) do notify('next:' .. waiters[i].name) end
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
-- models are in use. Those count that are asked for now and those that people or programs used lately, as
-- long as they are in memory. What is known of that may be some seconds old, so the newest count anyhow.
-- A program that takes turns does not count those that only have rows, nor one of a person those of agents.
local in_use, models_in_use, models_of_people, models_with_rows = {}, 0, 0, 0
local function use(model, has_rows_only)
  if model == claim.scope or in_use[model] then return end
  in_use[model] = true
  if has_rows_only then models_with_rows = models_with_rows + 1 else models_in_use = models_in_use + 1 end
end
local function gives_way(entry)
  return entry.lane == 'batch' or entry.lane == 'idle' or entry.lane == 'revoked'
end
local function is_agent(entry)
  return entry.lane == 'agent' or entry.wants == 'agent'
end
if not is_loaded then
  if not person_waits then
    local recent = redis.call('ZRANGEBYSCORE', KEYS[4], now - terms.keep_model, '+inf', 'WITHSCORES')
    for i = 1, #recent, 2 do
      if memory[recent[i]] or tonumber(recent[i + 1]) > now - terms.facts_age then use(recent[i]) end
    end
    models_of_people = models_in_use
  end
  if takes_turns or not person_waits then
    for model in pairs(memory) do
      local must_go = takes_turns and successor(model, lane, terms)
      if is_between_requests(model, lane, terms) and not must_go then use(model) end
    end
  end
  for _, entry in pairs(entries) do
    local is_passed = gives_way(entry) or person_waits and takes_turns and is_agent(entry)
    if entry.lane ~= 'queued' and not is_passed then use(entry.scope) end
  end
  for _, entry in pairs(entries) do
    if gives_way(entry) then use(entry.scope, true) end
  end
end
local is_crowded = models_in_use + models_with_rows >= terms.models_at_once

-- True if this request would make the server unload the entry's model.
local function unloads(entry)
  return not is_loaded and is_crowded and entry.scope ~= claim.scope
end

-- The models because of which this request has to wait; nil: none. Closes requests that give way.
local function model_in_the_way()
  if not is_loaded and is_crowded then
    if takes_turns and models_in_use < terms.models_at_once then
      for _, entry in pairs(entries) do
        if gives_way(entry) and entry.lane ~= 'revoked' and unloads(entry) then revoke(entry) end
      end
    end
    local names = {}
    for model in pairs(in_use) do names[#names + 1] = model end
    table.sort(names)
    return table.concat(names, ', ')
  end
  if not terms.swaps then return nil end
  if not takes_turns then return (wanted_model(claim.scope, lane, terms)) end
  if is_loaded then return successor(claim.scope, lane, terms) end
  return earlier_wanted(claim.scope, lane, terms)
end

-- Refuses because of a model. A program's request counts as waiting for its own, but not where people
-- are in its way: other programs could not help.
local function refuse_model(other)
  if lane == 'idle' then return 'model' end
  if takes_turns then note_model_wait(claim, terms) end
  local can_have = models_of_people < terms.models_at_once
  if takes_turns and terms.listed and can_have then note_wanted(claim.scope, lane, terms) end
  return refuse('model:' .. other)
end

if person_waits then
  redis.call('ZADD', KEYS[2], now, claim.person)
  redis.call('PEXPIRE', KEYS[2], terms.active + forget)
  if terms.swaps and terms.listed then
    redis.call('ZADD', KEYS[4], now, claim.scope)
    redis.call('PEXPIRE', KEYS[4], math.max(terms.keep_model, 1))
  end
  if takes_turns then
    local other = model_in_the_way()
    if other then return refuse_model(other) end
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
  local missing = (granted and people_waiting or ahead + 1) - (slots - held) - revoked
  for _, entry in ipairs(revocable) do
    if entry.lane ~= 'revoked' and (missing > 0 or not granted and not fits(staying)) then
      missing, staying = missing - 1, staying - entry.tokens
      revoke(entry)
    end
  end
  if granted then return grant() end
  if since == now then count('waited', 1) end
  wait()
  notify_ahead(slots - held)
  return 'slots:' .. ahead
end

-- People come first: those who wait, and those who may ask again.
local elsewhere = 0
for _, entry in pairs(entries) do
  if entry.lane == 'waiting' and entry.scope ~= claim.scope and unloads(entry) then elsewhere = elsewhere + 1 end
end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - terms.active)
local active = redis.call('ZCARD', KEYS[2])
local reserved = math.max(people, math.min(active, slots - 1))

if not is_loaded and lane == 'idle' then return 'model' end
if not person_waits then
  local other = model_in_the_way()
  if other then return refuse_model(other) end
end

-- The slots that this lane may have of those that are free.
local room = lane == 'idle' and slots - held or slots - reserved - others
local free = slots - held - elsewhere
if free > ahead and (lane == 'idle' or room > 0) then
  local is_full = held > 0 and (lane ~= 'idle' and people_waiting > 0 and terms.pool > 0 or not fits(tokens))
  if not is_full then return grant() end
end

-- Requests of lower lanes are closed for this one and those before it, as many as this lane may have.
if lane == 'agent' or lane == 'batch' then
  local most = lane == 'agent' and slots - reserved - fixed or ahead + 1
  local missing = math.min(ahead + 1, most) - (slots - held) - revoked
  local overflows = lane == 'agent' and most > 0 and not fits(staying)
  for _, entry in ipairs(revocable) do
    if missing > 0 or overflows then
      missing, staying = missing - 1, staying - entry.tokens
      overflows = overflows and not fits(staying)
      revoke(entry)
    end
  end
end
wait()
if room > 0 then notify_ahead(math.min(free, room)) end
if free > 0 and ahead > 0 then return 'slots:' .. ahead end  -- the reason is that of the foremost
local reason = free <= ahead and 'slots' or room <= 0 and lane ~= 'idle' and 'people' or 'tokens'
return refuse(reason) .. ':' .. ahead
