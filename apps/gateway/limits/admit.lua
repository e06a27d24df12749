-- Admits a request, where no limit of its key or its person forbids that.
--
-- KEYS: for each scope its times, its tokens of today, its requests in flight.
-- ARGV: name of the request, ms until its place lapses, then for each scope requests a minute,
-- tokens a day and requests in flight ('' is no limit).
-- Returns nothing, or the number of the scope, what is reached, and ms until it is worth to ask again.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local minute = 60000

for scope = 1, #KEYS / 3 do
  local times, tokens, flight = KEYS[scope * 3 - 2], KEYS[scope * 3 - 1], KEYS[scope * 3]
  local at = scope * 3
  local a_minute, a_day, at_once = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  if a_day and tonumber(redis.call('GET', tokens) or 0) >= a_day then return { scope, 'tokens', 0 } end
  if at_once then
    redis.call('ZREMRANGEBYSCORE', flight, '-inf', now)
    if redis.call('ZCARD', flight) >= at_once then return { scope, 'in_flight', 1000 } end
  end
  if a_minute then
    while tonumber(redis.call('LINDEX', times, 0) or now) <= now - minute do redis.call('LPOP', times) end
    local count = redis.call('LLEN', times)
    if count >= a_minute then
      return { scope, 'requests', redis.call('LINDEX', times, count - a_minute) + minute - now }
    end
  end
end

for scope = 1, #KEYS / 3 do
  local times, flight, at = KEYS[scope * 3 - 2], KEYS[scope * 3], scope * 3
  if tonumber(ARGV[at]) then
    redis.call('RPUSH', times, now)
    redis.call('PEXPIRE', times, minute)
  end
  if tonumber(ARGV[at + 2]) then
    redis.call('ZADD', flight, now + ARGV[2], ARGV[1])
    redis.call('PEXPIRE', flight, ARGV[2])
  end
end
return {}
