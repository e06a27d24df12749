-- Cuts the width of a server down after it has refused a request. KEYS[3]: as in take.lua.
--
-- ARGV: scope, part of what is in flight to go on with (0 to 1), ms to wait before it may grow, reason.

local held = 0
for _, entry in pairs(living()) do
  if entry.scope == ARGV[1] and entry.lane ~= 'waiting' then held = held + 1 end
end
-- The one that was refused is among them.
local width = math.max(1, math.min(held - 1, math.floor(held * ARGV[2])))
redis.call('HSET', KEYS[3], 'width', width, 'since', now + ARGV[3], 'reason', ARGV[4])
redis.call('EXPIRE', KEYS[3], 3600)
