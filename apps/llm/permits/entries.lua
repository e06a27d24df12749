-- Prepended to every script of this folder: the permits of one server.
--
-- KEYS[1], a hash, has one JSON entry for each permit held and each person who waits for one:
--   lane    interactive | batch | idle | revoked (its request is being closed) | waiting
--   scope   the model where each has slots of its own, else ""
--   model, label, person, owner, tokens (prompt and answer at most)
--   since, ends   in ms; an entry that is not renewed lapses at `ends`
-- KEYS[2], a sorted set, has the people who are active on the server, by the time of their last request.
-- Times are Redis's own, so that machines agree.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- Keys that nobody reads any more expire after this.
local forget = 10000

local function store(name, entry)
  redis.call('HSET', KEYS[1], name, cjson.encode(entry))
end

local function notify(message)
  redis.call('PUBLISH', KEYS[1], message)
end

-- All entries that have not lapsed, by name.
local function living()
  local found, flat = {}, redis.call('HGETALL', KEYS[1])
  for i = 1, #flat, 2 do
    local entry = cjson.decode(flat[i + 1])
    if entry.ends > now then
      found[flat[i]] = entry
    else
      redis.call('HDEL', KEYS[1], flat[i])
    end
  end
  return found
end

-- Adds to a counter of the current ten seconds, for the charts.
local function count(name, amount)
  local key = KEYS[1] .. ':rates:' .. math.floor(now / 10000)
  redis.call('HINCRBY', key, name, amount)
  redis.call('EXPIRE', key, 1200)
end
