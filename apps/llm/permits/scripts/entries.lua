-- Prepended to every script of this folder: the permits of one server.
--
-- KEYS[1], a hash, has one JSON entry for each permit held and each request that waits for one:
--   lane    interactive | agent | batch | idle | revoked (its request is being closed), of those who wait
--           waiting (people and agents) | queued (batch and idle work)
--   wants   the lane of a request that waits
--   share   the key that asks, "" for the workbench itself
--   prefix  names the beginning of its prompt; "" or absent where that does not matter
--   aged    it came one lane up: see queue.lua
--   loses_work   it begins again where it is closed before its end
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
