-- game.lua - the six programs of examples/code in Lua: pawl run examples/lua/game.lua, or
-- pawl serve --module examples/lua/game.lua. Combat changes rows of its host (reduce): a plain
-- server has none, and refuses that turn by name.

-- A buff stacks and runs out; every stack restarts its time.
workflow("buff", {
  input = { duration_secs = "integer?" },
  signals = { stack = "integer" }, kept = {},
}, function(input)
  local stacks = 1
  while true do
    local which, more = select {
      expire = sleep(input.duration_secs or 60, "expire"),
      dispel = signal "dispel",
      stack = signal "stack",
    }
    if which ~= "stack" then return { final_stacks = stacks } end
    stacks = stacks + more
  end
end)

-- What it does to the world is in the same transaction as its own step on.
workflow("combat", {
  input = { target_id = "integer?", damage = "integer?" }, kept = {},
}, function(input)
  for rounds = 1, 2 do
    reduce("apply_damage", { target = input.target_id or 0, damage = input.damage or 50 })
    local which = select { delay = sleep(1, "delay"), flee = signal "flee" }
    if which == "flee" then return { victory = false, rounds = rounds } end
  end
  return { victory = true, rounds = 2 }
end)

-- Walks waypoints until it sees a threat, fights (a child), walks on.
workflow("patrol", {
  input = { waypoints = "integer?" },
  signals = { threat_detected = "integer" }, kept = {},
}, function(input)
  local waypoint, fights = 0, 0
  await(sleep(1, "start_patrol"))
  while waypoint < (input.waypoints or 3) do
    local which, enemy = select {
      arrival = sleep(10, "arrival"),
      stand_down = signal "stand_down",
      threat = signal "threat_detected",
    }
    if which == "arrival" then
      waypoint = waypoint + 1
    elseif which == "stand_down" then
      break
    else
      local outcome = await(spawn("combat", { target_id = enemy }))
      fights = fights + 1
      if not outcome.victory then
        fail("lost against " .. enemy .. " after " .. outcome.rounds .. " rounds")
      end
    end
  end
  return { waypoint = waypoint, fights = fights }
end)

-- A bid near the end extends the auction; a bid that is too low is ignored.
workflow("auction", {
  input = { item = "string?", reserve_cents = "integer?", hours = "integer?" },
  signals = { bid = "table" }, kept = {},
}, function(input)
  local best, is_open = { bidder = "", cents = 0 }, false
  while true do -- from the first bid on: an hour of silence ends it
    local quiet = is_open and sleep("1h", "going_once") or sleep((input.hours or 48) * 3600, "close")
    local which, offer = select { quiet = quiet, withdraw = signal "withdraw", bid = signal "bid" }
    if which == "withdraw" then
      fail((input.item or "a lamp") .. " was withdrawn")
    elseif which == "quiet" then
      return { sold = is_open and best.cents >= (input.reserve_cents or 1000), best = best }
    end
    is_open = true
    if offer.cents > best.cents then best = offer end
  end
end)

-- Both sides accept within five minutes, then another system moves the goods.
workflow("trade", {
  input = { buyer = "integer?", seller = "integer?" },
  signals = { accept = "integer", decline = "integer" }, kept = {},
}, function(input)
  local buyer, seller, accepted = input.buyer or 0, input.seller or 0, {}
  while not (accepted[buyer] and accepted[seller]) do
    local which, who = select {
      timeout = sleep("5m", "timeout"),
      accept = signal "accept",
      decline = signal "decline",
    }
    if which == "timeout" then fail("no reply for five minutes") end
    if which == "decline" then fail(who .. " declined") end
    accepted[who] = true
  end
  return { receipt = await(external("transfer_goods", { from = seller, to = buyer })) }
end)

-- Is reached by broadcasts of what happens in the world, as far as it has asked for it. The item may
-- be found while the quest still hunts: that signal is kept until it is awaited.
workflow("quest", {
  input = { enemy = "string?", item = "integer?", kills = "integer?" },
  signals = { enemy_killed = "string", item_collected = "integer" }, kept = { "item_collected" },
}, function(input)
  local item = input.item or 0
  subscribe("enemy_killed", input.enemy or "wolf")
  subscribe("item_collected", item)
  for _ = 1, input.kills or 2 do await(signal "enemy_killed") end
  repeat until await(signal "item_collected") == item
  return { completed = true }
end)
