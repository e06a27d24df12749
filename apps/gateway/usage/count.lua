-- Adds what a request came to.
--
-- ARGV: the place it is counted at, the place where there are too many, the most numbers, then name
-- and amount of each number.

local place = ARGV[1]
local is_full = redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3])
if is_full and redis.call('HEXISTS', KEYS[1], 'requests:' .. place) == 0 then place = ARGV[2] end
for i = 4, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i] .. ':' .. place, ARGV[i + 1])
end
