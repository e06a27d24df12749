-- Renews permits of one process. Those that Redis has lost are registered again.
--
-- ARGV: lease in ms, then name and claim of each. Returns the names of those that were revoked.

local entries, revoked = living(), {}
for i = 2, #ARGV, 2 do
  local entry = entries[ARGV[i]]
  if not entry then
    entry = cjson.decode(ARGV[i + 1])
    entry.since = now
  end
  entry.ends = now + ARGV[1]
  store(ARGV[i], entry)
  if entry.lane == 'revoked' then revoked[#revoked + 1] = ARGV[i] end
end
return revoked
