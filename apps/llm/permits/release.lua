-- Releases a permit (or ends the wait for one) and counts what its request cost.
--
-- ARGV: name, person or "", ms a person stays active, requests, prompt tokens, cached tokens,
-- completion tokens, prompt tokens of answers that reported how many were cached.

local claim = redis.call('HGET', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[1], ARGV[1])
-- It was answered: should the server refuse again, the first pause is short again.
if claim and tonumber(ARGV[4]) > 0 then
  local limit = KEYS[1] .. ':limit:' .. cjson.decode(claim).scope
  local pause_ends = redis.call('HGET', limit, 'until')
  if pause_ends and now >= tonumber(pause_ends) then redis.call('HDEL', limit, 'refusals') end
end
-- A person is active until some time after the last answer, not the last question.
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[2], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3] + forget)
end
for i, name in ipairs({ 'requests', 'prompt', 'cached', 'completion', 'reported' }) do
  if tonumber(ARGV[i + 3]) > 0 then count(name, ARGV[i + 3]) end
end
notify('free')
