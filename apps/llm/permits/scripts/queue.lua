-- Prepended to acquire.lua: the order of those who wait for the same slots.

local rank = { interactive = 1, agent = 2, batch = 3, idle = 4 }

-- Where an entry stands. Batch and idle work that waited for long, of someone who got nothing meanwhile,
-- comes one lane up, and keeps its slot from that lane: no lane starves behind one that people are not in,
-- nor gets as much as that.
local function rank_of(lane, aged)
  return aged and rank[lane] - 1 or rank[lane]
end

-- Turns are those of a person in a lane, and within them those of a key.
local function person_of(lane, entry)
  return lane .. ':' .. entry.owner
end

local function key_of(lane, entry)
  return person_of(lane, entry) .. ':' .. (entry.share or '')
end

local function take_turn(turns, id)
  local turn = turns[id] or 0
  turns[id] = turn + 1
  return turn
end

-- People and their keys take turns: someone with a request at the server, or with an earlier one
-- waiting, comes after all of the lane who have none. Within a turn, the longest time since the last
-- slot comes first, then the first to arrive.
--
-- Among the requests of one key, those come first whose prompt begins as that of its last one: the slot
-- still has it. One that has waited for `grouped` ms is passed by none of these.
--
-- waiters: entries with their name; turns: the requests in flight of each person and key.
local function sort_queue(waiters, turns, grouped)
  local function arrived_first(a, b)
    if a.since ~= b.since then return a.since < b.since end
    return a.name < b.name
  end
  local known = {}
  local function last_slot(id)
    known[id] = known[id] or tonumber(redis.call('ZSCORE', KEYS[5], id)) or 0
    return known[id]
  end
  local last_prefix = {}
  local function place_in_group(entry, key)
    if not entry.prefix or entry.prefix == '' then return 1 end
    if last_prefix[key] == nil then last_prefix[key] = redis.call('HGET', KEYS[6], key) end
    return last_prefix[key] == entry.prefix and 0 or 1
  end
  for _, entry in ipairs(waiters) do
    local is_due = now - entry.since >= grouped
    entry.group = is_due and -1 or place_in_group(entry, key_of(entry.wants, entry))
  end
  local function comes_first(a, b)
    if a.group ~= b.group then return a.group < b.group end
    return arrived_first(a, b)
  end
  table.sort(waiters, comes_first)
  for _, entry in ipairs(waiters) do
    local key = key_of(entry.wants, entry)
    entry.key_turn, entry.key_last = take_turn(turns, key), last_slot(key)
  end
  local function of_key(a, b)
    if a.key_turn ~= b.key_turn then return a.key_turn < b.key_turn end
    if a.key_last ~= b.key_last then return a.key_last < b.key_last end
    return comes_first(a, b)
  end
  table.sort(waiters, of_key)
  for _, entry in ipairs(waiters) do
    local person = person_of(entry.wants, entry)
    entry.turn, entry.last_slot = take_turn(turns, person), last_slot(person)
    entry.rank = rank_of(entry.wants, entry.aged)
  end
  table.sort(waiters, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.turn ~= b.turn then return a.turn < b.turn end
    if a.last_slot ~= b.last_slot then return a.last_slot < b.last_slot end
    return of_key(a, b)
  end)
end
