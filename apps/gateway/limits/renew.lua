-- Renews the places of requests in flight. KEYS: of each its scope. ARGV: ms, then each one's name.

local time = redis.call('TIME')
local until_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for i, flight in ipairs(KEYS) do
  redis.call('ZADD', flight, until_ms, ARGV[i + 1])
  redis.call('PEXPIRE', flight, ARGV[1])
end
