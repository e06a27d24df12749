-- Reduces the slots of a server after it has refused a request. KEYS[3]: as in acquire.lua.
--
-- ARGV: scope, share of what is in flight to go on with (0 to 1), ms it wants to be left alone (0: not
-- reported), reason, ms of the first pause (0: no pause), ms of the longest.

local held = 0
for _, entry in pairs(living()) do
  if entry.scope == ARGV[1] and entry.lane ~= 'waiting' and entry.lane ~= 'queued' then held = held + 1 end
end
-- The one that was refused is among them.
local slots = math.max(1, math.min(held - 1, math.floor(held * ARGV[2])))
-- Each refusal after a pause doubles the next one, until a request is answered. Refusals at the same
-- time count once.
local known = redis.call('HMGET', KEYS[3], 'refusals', 'until')
local refusals, pause_ends = tonumber(known[1]) or 0, tonumber(known[2]) or 0
local reported, first = tonumber(ARGV[3]), tonumber(ARGV[5])
if first > 0 then
  if refusals == 0 or now >= pause_ends then refusals = refusals + 1 end
  local pause = reported
  if reported == 0 or refusals > 1 then
    pause = math.max(reported, math.min(tonumber(ARGV[6]), first * 2 ^ math.min(refusals - 1, 20)))
  end
  pause_ends = math.max(pause_ends, now + pause)
end
local since = math.max(now + reported, pause_ends)
redis.call('HSET', KEYS[3], 'slots', slots, 'since', string.format('%d', since), 'reason', ARGV[4],
  'refusals', refusals, 'until', string.format('%d', pause_ends))
redis.call('PEXPIRE', KEYS[3], string.format('%d', 3600000 + since - now))
