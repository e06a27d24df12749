-- Renews permits of one process. What Redis has lost is registered again.
--
-- ARGV: lease in ms, then name and claim of each. Returns the names that have been taken back.

local entries, taken = living(), {}
for i = 2, #ARGV, 2 do
  local entry = entries[ARGV[i]]
  if not entry then
    entry = cjson.decode(ARGV[i + 1])
    entry.since = now
  end
  entry.ends = now + ARGV[1]
  keep(ARGV[i], entry)
  if entry.lane == 'yielding' then taken[#taken + 1] = ARGV[i] end
end
return taken
