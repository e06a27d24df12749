-- Ends a request: frees its places and counts its tokens.
--
-- KEYS: for each scope its tokens of today and its requests in flight.
-- ARGV: name of the request, its tokens, then for each scope '1' where tokens are limited.

for scope = 1, #KEYS / 2 do
  local tokens = KEYS[scope * 2 - 1]
  redis.call('ZREM', KEYS[scope * 2], ARGV[1])
  if ARGV[scope + 2] == '1' and tonumber(ARGV[2]) > 0 then
    redis.call('INCRBY', tokens, ARGV[2])
    redis.call('EXPIRE', tokens, 172800)
  end
end
