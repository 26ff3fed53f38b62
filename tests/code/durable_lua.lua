-- Workflows for run_lua.py: each shows one thing that durable code in Lua can do.

workflow("order", { retries = { price = { max = 2, first = "1s" } } }, function(input)
  local asked = {}
  for i, line in ipairs(input.lines) do asked[i] = call("price", line) end
  local prices, sum = gather(asked), 0
  for _, price in ipairs(prices) do sum = sum + price end
  local ok, why = pcall(function() return await(call("decline")) end)
  return { sum = sum, declined = not ok and why.code }
end)

workflow("chance", function()
  local seen = { random(), random(6) }
  for _ = 1, 3 do
    await(sleep(1))
    seen[#seen + 1] = random(1000000)
    seen[#seen + 1] = now()
  end
  return seen
end)

workflow("ticker", { input = { count = "integer?", most = "integer" } }, function(input)
  local count = input.count or 0
  for _ = 1, 3 do
    if count >= input.most then return count end
    await(sleep(1, "tick"))
    count = count + 1
  end
  continue_as { count = count, most = input.most }
end)

local function watch(name)
  await(sleep(2, name))
  return name
end

workflow("helpers", function()
  local which, value = select {
    slow = function() return watch("slow") end,
    both = function() return gather { function() await(sleep(1)) return "one" end, sleep(1) } end,
  }
  return { which, value[1] }
end)

workflow("parent", function(input)
  local children = {}
  for i = 1, input.count do children[i] = spawn("child", { n = i }) end
  return gather(children)
end)

workflow("child", { input = { n = "integer" } }, function(input)
  if input.n == 99 then fail({ code = "too many" }) end
  await(sleep(input.n))
  return input.n * input.n
end)

workflow("sender", function(input)
  start("child", { n = 5 })
  send(input.to, "paid", 60)
  await(sleep(1))
  return "sent"
end)

workflow("wild", { signals = { go = "string", paid = "any" } }, function()
  local how = await(signal "go")
  if how == "loop" then while true do end end
  if how == "quiet loop" then while true do pcall(function() while true do end end) end end
  if how == "memory" then
    local all = {}
    while true do all[#all + 1] = ("x"):rep(100000) .. #all end
  end
  if how == "mistake" then return nothing.at_all end
  if how == "address" then return tostring({}) end
  if how == "keys" then for _ in pairs({ [{}] = 1 }) do end end
  if how == "function" then return { print } end
  if how == "infinite" then return 1 / 0 end
  if how == "undeclared" then await(signal("no" .. "where")) end
  if how == "swallow" then pcall(function() fail("not swallowed") end) end
  if how == "globals" then
    local found = {}
    for _, name in ipairs { "io", "os", "require", "package", "debug", "load", "dofile", "loadfile", "next", "coroutine", "collectgarbage", "rawset" } do
      if _G[name] ~= nil then found[#found + 1] = name end
    end
    if math.random or string.dump then found[#found + 1] = "random or dump" end
    return list(found)
  end
  if how == "order" then
    local keys = {}
    for key in pairs { zebra = 1, ant = 2, [3] = 3, [1] = 1, mole = 4 } do keys[#keys + 1] = key end
    return keys
  end
  return how
end)
