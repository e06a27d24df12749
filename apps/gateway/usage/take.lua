-- Returns what was taken and not yet deleted, else what was counted, under the name ARGV[1].

if redis.call('EXISTS', KEYS[2]) == 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
  redis.call('RENAME', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[2], 'batch', ARGV[1])
end
return redis.call('HGETALL', KEYS[2])
