-- Read before each script of this folder: the permits of one server.
--
-- KEYS[1], a hash, has one JSON entry for each permit held and each person who waits for one:
--   lane    interactive | batch | spare | yielding (taken back, its request is being closed) | waiting
--   scope   the model where each has slots of its own, else ""
--   model, label, person, tokens (prompt and answer at most)
--   since, ends   in ms; whoever stops renewing his entry has lost it at `ends`
-- KEYS[2], a sorted set, has the people who are active on the server, by the time of their last request.
-- Times are Redis's own, so that machines agree.

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
-- What nobody reads any more is gone so long after.
local forgotten = 10000

local function keep(name, entry)
  redis.call('HSET', KEYS[1], name, cjson.encode(entry))
end

local function say(what)
  redis.call('PUBLISH', KEYS[1], what)
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

-- Ten seconds of what is counted for the charts.
local function count(what, amount)
  local key = KEYS[1] .. ':rates:' .. math.floor(now / 10000)
  redis.call('HINCRBY', key, what, amount)
  redis.call('EXPIRE', key, 1200)
end
