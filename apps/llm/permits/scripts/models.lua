-- Prepended to acquire.lua: the models of a server that loads them as they are asked for. Each load takes
-- seconds, so programs on different models do not change it with each request: a model stays for the pause
-- between two requests of a program, and gives way when it had its turn and programs wait for another.
--
-- KEYS[7]: a hash, a JSON entry for each model:
--   used    when a request for it last got a slot or ended
--   interactive, agent   the same, of the programs of each lane alone
--   began   when the first request ended since it was loaded; absent until then
--   wanted:<lane>, asked:<lane>   since when its programs wait until the model may be loaded, and when
--           one of them asked last
-- KEYS[8]: a sorted set, the requests of programs that wait until their model may be loaded, each as
-- lane:request:model, by the time at which it has left if it does not ask again.

local model_uses = {}

local function store_model_use(model, use)
  redis.call('HSET', KEYS[7], model, cjson.encode(use))
  redis.call('PEXPIRE', KEYS[7], 3600000)
end

local function read_model_uses(entries)
  local flat = redis.call('HGETALL', KEYS[7])
  for i = 1, #flat, 2 do model_uses[flat[i]] = cjson.decode(flat[i + 1]) end
  for _, entry in pairs(entries) do
    local use = model_uses[entry.scope]
    if use and entry.lane ~= 'waiting' and entry.lane ~= 'queued' then
      use.used = math.max(use.used or 0, now)
    end
  end
end

-- The models in memory, as a set: those used last, which the server's facts may not know yet.
local function models_in_memory(terms)
  local recent, found = {}, {}
  for model, use in pairs(model_uses) do
    if use.used and use.used > now - terms.facts_age then recent[#recent + 1] = model end
  end
  table.sort(recent, function(a, b) return model_uses[a].used > model_uses[b].used end)
  for i = 1, math.min(#recent, terms.models_at_once) do found[recent[i]] = true end
  if #recent < terms.models_at_once then
    for _, model in ipairs(terms.loaded_models) do found[model] = true end
  end
  return found
end

-- The lanes whose programs a request of this lane takes turns with: people do so among themselves.
local function rivals(lane)
  return lane == 'interactive' and { 'interactive' } or { 'interactive', 'agent' }
end

-- Since when programs of some lanes wait for a model; nil: none does.
local function wanted_since(use, lanes, terms)
  local since = nil
  for _, lane in ipairs(use and lanes or {}) do
    local wanted, asked = use['wanted:' .. lane], use['asked:' .. lane]
    if asked and asked > now - terms.waiter and (not since or wanted < since) then since = wanted end
  end
  return since
end

-- Another model than this one for which programs wait, and since when; of several the one that they
-- wait for longest.
local function wanted_model(model, lane, terms)
  local first, since = nil, nil
  for other, use in pairs(model_uses) do
    local wanted = other ~= model and wanted_since(use, rivals(lane), terms)
    if wanted and (not since or wanted < since) then first, since = other, wanted end
  end
  return first, since
end

-- The model that programs have waited for longer than for this one.
local function earlier_wanted(model, lane, terms)
  local other, since = wanted_model(model, lane, terms)
  local mine = wanted_since(model_uses[model], { lane }, terms)
  return other and (not mine or since < mine) and other or nil
end

-- The model for which this one has to give way, after a turn of its own.
local function successor(model, lane, terms)
  local use = model_uses[model]
  local other, since = wanted_model(model, lane, terms)
  if not other or not use or not use.began then return nil end
  return now - math.max(use.began, since) >= terms.model_turn and other or nil
end

-- True if a program worked with it a moment ago and may ask again.
local function is_between_requests(model, lane, terms)
  local use = model_uses[model]
  for _, one in ipairs(use and rivals(lane) or {}) do
    if use[one] and use[one] > now - terms.model_pause then return true end
  end
  return false
end

local function note_wanted(model, lane, terms)
  local use = model_uses[model] or {}
  use['wanted:' .. lane] = wanted_since(use, { lane }, terms) or now
  use['asked:' .. lane] = now
  store_model_use(model, use)
end

local function note_granted(model, lane, takes_turns, was_in_memory)
  local use = model_uses[model] or {}
  if not was_in_memory then use.began = nil end
  use.used = now
  for _, other in pairs(model_uses) do  -- several may come in one millisecond; JSON has 14 digits
    if other ~= use then use.used = math.max(use.used, (other.used or 0) + 0.1) end
  end
  if takes_turns then use[lane], use['wanted:' .. lane], use['asked:' .. lane] = now, nil, nil end
  store_model_use(model, use)
end

local function model_wait(claim)
  return claim.lane .. ':' .. (claim.request or '') .. ':' .. claim.scope
end

local function note_model_wait(claim, terms)
  redis.call('ZREMRANGEBYSCORE', KEYS[8], '-inf', now)
  redis.call('ZADD', KEYS[8], now + terms.waiter, model_wait(claim))
  redis.call('PEXPIRE', KEYS[8], terms.waiter)
end

local function forget_model_wait(claim)
  redis.call('ZREM', KEYS[8], model_wait(claim))
end
