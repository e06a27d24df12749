-- Releases a permit (or ends the wait for one) and counts what its request cost.
--
-- ARGV: name, person or "", ms a person stays active, then name and amount of each count.

local claim = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
-- It was answered: should the server refuse again, the first pause is short again.
claim = claim and cjson.decode(claim)
if claim and ARGV[4] == 'requests' then
  local limit = KEYS[1] .. ':limit:' .. claim.scope
  local pause_ends = redis.call('HGET', limit, 'until')
  if pause_ends and now >= tonumber(pause_ends) then redis.call('HDEL', limit, 'refusals') end
end
-- A model stays in memory for the next request: see models.lua.
if claim and claim.lane ~= 'waiting' and claim.lane ~= 'queued' then
  local uses = KEYS[1] .. ':model-uses'
  local use = redis.call('HGET', uses, claim.scope)
  if use then
    use = cjson.decode(use)
    use.used, use.began = math.max(use.used or 0, now), use.began or now
    local is_program = claim.share and claim.share ~= ''
    if claim.lane == 'agent' or claim.lane == 'interactive' and is_program then use[claim.lane] = now end
    redis.call('HSET', uses, claim.scope, cjson.encode(use))
  end
end
-- A person is active until some time after the last answer, not the last question.
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[2], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3] + forget)
end
-- The totals of each model are read by whoever wants to know what came since they read last. Names of
-- models are people's: there may not be any number of them.
local totals = KEYS[1] .. ':totals'
local is_full = redis.call('HLEN', totals) > 4000
local charted = { requests = 1, prompt = 1, cached = 1, completion = 1, reported = 1 }
for i = 4, #ARGV, 2 do
  if charted[ARGV[i]] then count(ARGV[i], ARGV[i + 1]) end
  if claim then
    local field = ARGV[i] .. ':' .. claim.model
    if not is_full or redis.call('HEXISTS', totals, field) == 1 then
      redis.call('HINCRBY', totals, field, ARGV[i + 1])
    end
  end
end
if #ARGV > 3 then redis.call('EXPIRE', totals, 2592000) end
notify('free')
