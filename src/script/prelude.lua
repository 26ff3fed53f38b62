-- prelude.lua - what workflows in Lua are written with, and one turn of an instance.
--
-- Each instance has a Lua state of its own, in which this runs before the author's file. Code is
-- replayed: what it does must follow from the events alone, so the order of tables is that of their
-- keys, and there is no clock, no random number and no I/O but through this.
local source, seed, array_mark, say = ...
local yield, resume, create, close, running = coroutine.yield, coroutine.resume, coroutine.create, coroutine.close, coroutine.running
local status = coroutine.status
local raw_pcall, raw_error, raw_next, raw_type, raw_set, raw_get = pcall, error, next, type, setmetatable, getmetatable
local raw_tostring, raw_format, sort, floor = tostring, string.format, table.sort, math.floor
local select_arguments = select

-- ---- The sandbox ----

local function refuse_address(value)
  local kind = raw_type(value)
  if kind == "table" and raw_get(value) and raw_get(value).__tostring then return end
  if kind == "table" or kind == "function" or kind == "thread" or kind == "userdata" then
    raw_error("a " .. kind .. " has no text of its own", 3)
  end
end
function tostring(value) refuse_address(value) return raw_tostring(value) end
string.format = function(format, ...)
  if format:find("%p", 1, true) then raw_error("string.format: %p is not to be had", 2) end
  for i = 1, select_arguments("#", ...) do refuse_address((select_arguments(i, ...))) end
  return raw_format(format, ...)
end

local function before(a, b)
  local x, y = raw_type(a), raw_type(b)
  if x ~= y then return x < y end
  if x == "boolean" then return not a and b end
  return a < b
end
local function keys_of(values)
  local keys = {}
  for key in raw_next, values do
    local kind = raw_type(key)
    if kind ~= "number" and kind ~= "string" and kind ~= "boolean" then
      raw_error("pairs: a key is a " .. kind .. ", which has no order", 3)
    end
    keys[#keys + 1] = key
  end
  sort(keys, before)
  return keys
end
function pairs(values)
  if raw_type(values) ~= "table" then raw_error("pairs: expected a table, found " .. raw_type(values), 2) end
  local keys, at = keys_of(values), 0
  return function()
    while true do
      at = at + 1
      local key = keys[at]
      if key == nil then return nil end
      local value = values[key]
      if value ~= nil then return key, value end
    end
  end
end
function setmetatable(values, meta)
  if meta and (meta.__gc ~= nil or meta.__mode ~= nil) then raw_error("setmetatable: no __gc and no __mode", 2) end
  return raw_set(values, meta)
end
function list(values) return raw_set(values or {}, array_mark) end

-- ---- One instance ----

local types, order = {}, {}
local run, task_now

local Future, Mark = {}, {}
Future.__index = Future
Future.__tostring = function(future) return future.label end

local function mistake(words) raw_error(raw_set({ mistake = words }, Mark), 0) end
local function is_mark(found) return raw_type(found) == "table" and raw_get(found) == Mark end
-- What ends the turn is not caught by the author's pcall.
function pcall(f, ...)
  local results = table.pack(raw_pcall(f, ...))
  if not results[1] and is_mark(results[2]) and not results[2].call then raw_error(results[2], 0) end
  if not results[1] and is_mark(results[2]) then results[2] = results[2].error end
  return table.unpack(results, 1, results.n)
end
function error(found, level) raw_error(found, raw_type(found) == "string" and (level or 1) + 1 or 0) end

local function need_run(name)
  if not run then raw_error(name .. ": only inside a workflow", 3) end
end
local function new_future(label) return raw_set({ label = label, waiting = {} }, Future) end
local function settle(future, value, failure)
  if future.done then return end
  future.done, future.value, future.failure = true, value, failure
  for _, task in ipairs(future.waiting) do run.ready[#run.ready + 1] = task end
  future.waiting = {}
end
local function without(rows, future)
  local kept = {}
  for _, row in ipairs(rows) do if row.future ~= future then kept[#kept + 1] = row end end
  return kept
end
local function cancel(future)
  if future.done then return end
  future.done, future.failure = true, raw_set({ mistake = future.label .. " was cancelled, and is awaited" }, Mark)
  run.timers, run.signals, run.calls = without(run.timers, future), without(run.signals, future), without(run.calls, future)
  if future.co then
    if future.co ~= running() then close(future.co) end
    for _, awaited in ipairs(future.awaiting or {}) do cancel(awaited) end
  end
end

function async(f, ...)
  need_run("async")
  local task = new_future("a function")
  task.co, task.arguments = create(f), table.pack(...)
  run.ready[#run.ready + 1] = task
  return task
end
local function future_of(what, name)
  if raw_type(what) == "function" then return async(what) end
  if raw_type(what) == "table" and raw_get(what) == Future then return what end
  raw_error(name .. ": expected what sleep, signal, call, spawn, external or async give, or a function; found a " .. raw_type(what), 3)
end
local function wait_for(futures)
  local task = task_now
  task.awaiting = futures
  for _, future in ipairs(futures) do future.waiting[#future.waiting + 1] = task end
  yield()
  task.awaiting = nil
end
local function result_of(future)
  if future.failure ~= nil then raw_error(future.failure, 0) end
  return future.value
end
function await(what)
  need_run("await")
  local future = future_of(what, "await")
  while not future.done do wait_for({ future }) end
  return result_of(future)
end
-- The first of them: its name and its value. The others are over.
function select(arms)
  need_run("select")
  local names, futures = keys_of(arms), {}
  for i, name in ipairs(names) do futures[i] = future_of(arms[name], "select") end
  if #futures == 0 then mistake("select: it has no arms") end
  while true do
    for i, future in ipairs(futures) do
      if future.done then
        for _, other in ipairs(futures) do cancel(other) end
        return names[i], result_of(future)
      end
    end
    wait_for(futures)
  end
end
-- All of them at once; then the first error is raised.
function gather(arms)
  need_run("gather")
  local futures, results, failed = {}, list({}), nil
  for i, arm in ipairs(arms) do futures[i] = future_of(arm, "gather") end
  for i, future in ipairs(futures) do
    while not future.done do wait_for({ future }) end
    if future.failure ~= nil then failed = failed or future else results[i] = future.value end
  end
  if failed then raw_error(failed.failure, 0) end
  return results
end

local units = { ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000, w = 604800000 }
local function milliseconds(duration)
  if raw_type(duration) == "number" then return floor(duration * 1000 + 0.5) end
  local number, unit
  if raw_type(duration) == "string" then number, unit = duration:match("^(%d+%.?%d*)(%a+)$") end
  if not number or not units[unit] then
    raw_error("sleep: expected seconds or a text like \"90s\", \"5m\", \"7d\"", 3)
  end
  return floor(tonumber(number) * units[unit] + 0.5)
end
function sleep(duration, name)
  need_run("sleep")
  local ms, found, number = milliseconds(duration), name or "sleep", 1
  local function is_taken()
    for _, timer in ipairs(run.timers) do if timer.name == found then return true end end
  end
  while is_taken() do number = number + 1; found = (name or "sleep") .. "_" .. number end
  local future = new_future("sleep(" .. found .. ")")
  run.timers[#run.timers + 1] = { name = found, future = future, due = run.at + (ms < 1 and 1 or ms) }
  return future
end
local function declared(kind, name)
  if raw_type(name) ~= "string" or not run.type.uses[kind][name] then
    mistake(kind .. "(" .. raw_tostring(name) .. "): the file does not name it in quotes; say it in the list '" .. kind .. "s' of workflow()")
  end
end
function signal(name)
  need_run("signal")
  declared("signal", name)
  local future = new_future("signal(" .. name .. ")")
  run.signals[#run.signals + 1] = { name = name, future = future }
  return future
end
local function begin_call(kind, name, args, options, spawn)
  need_run(kind)
  declared(kind, name)
  local future = new_future(kind .. "(" .. name .. ")")
  run.calls[#run.calls + 1] = { name = name, args = args, key = options and options.key, spawn = spawn, future = future }
  return future
end
function call(name, args, options) return begin_call("call", name, args, options) end
function external(name, args) return begin_call("external", name, args) end
function spawn(name, input, options) return begin_call("spawn", name, input or {}, nil, options and options.abandon and 2 or 1) end

function start(definition, input)
  need_run("start")
  run.sends[#run.sends + 1] = list({ "send", "instance.create", { definition = definition, input = input or {} } })
end
function send(id, name, payload)
  need_run("send")
  run.sends[#run.sends + 1] = list({ "send", "signal.send", { instance_id = id, name = name, payload = payload } })
end
-- Rows of the host, in the same transaction; a server has none.
function reduce(name, args)
  need_run("reduce")
  run.reduces[#run.reduces + 1] = list({ "reduce", name, args })
end
function subscribe(name, value)
  need_run("subscribe")
  declared("signal", name)
  local values = run.subscriptions[name] or list({})
  values[#values + 1] = value
  run.subscriptions[name] = values
end

function fail(found) raw_error(raw_set({ fail = true, error = found }, Mark), 0) end
function refuse(words) raw_error(raw_set({ refuse = words }, Mark), 0) end
function continue_as(input) raw_error(raw_set({ continue = true, input = input or {} }, Mark), 0) end
function now() need_run("now") return run.at / 1000 end
function instance_id()
  need_run("instance_id")
  if not run.id then mistake("instance_id: the instance has none before its first await") end
  return run.id
end
function patched(name)
  need_run("patched")
  if run.patches[name] then return true end
  local noted = false
  for _, one in ipairs(run.old_note.patched or {}) do noted = noted or one == name end
  if run.is_replaying and not noted then return false end
  run.patches[name] = true
  run.note.patched = run.note.patched or list({})
  run.note.patched[#run.note.patched + 1] = name
  return true
end
-- splitmix64, from a seed that the entry keeps.
local function next_bits()
  if not run.state_of_chance then
    local found = run.is_replaying and run.old_note.seed or seed()
    run.note.seed = found
    run.state_of_chance = found
  end
  run.state_of_chance = run.state_of_chance + 0x9e3779b97f4a7c15
  local z = run.state_of_chance
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return z ~ (z >> 31)
end
function random(least, most)
  need_run("random")
  if not least then return (next_bits() >> 11) / 9007199254740992.0 end
  if not most then least, most = 1, least end
  if most < least then raw_error("random: expected a least that is not above the most", 2) end
  return least + (next_bits() >> 1) % (most - least + 1)
end
-- To the server's standard error; nothing when the code is replayed.
function log(...)
  if run and run.is_replaying then return end
  local words = {}
  for i = 1, select_arguments("#", ...) do words[i] = tostring((select_arguments(i, ...))) end
  say(table.concat(words, " "))
end
print = log

-- ---- A turn ----

local kinds = { [2] = "timer", [3] = "signal", [4] = "call", [5] = "call", [6] = "child", [7] = "child" }

local function begin(at, note, is_replaying)
  run.at, run.old_note, run.note, run.is_replaying, run.checkpoint, run.sends, run.reduces = at, note or {}, {}, is_replaying, nil, list({}), list({})
end
local function begin_main(input)
  run.main = new_future("the workflow")
  run.main.co, run.main.arguments = create(run.type.body), { n = 1, input }
  run.ready[#run.ready + 1] = run.main
end
local function restart(input)
  run.ready, run.timers, run.signals, run.calls, run.patches = {}, {}, {}, {}, {}
  run.state_of_chance, run.note, run.old_note = nil, {}, {}
  run.checkpoint = { args = input, at = run.at, calls = run.numbers }
  begin_main(input)
end
local function go_on()
  while #run.ready > 0 do
    local task = table.remove(run.ready, 1)
    if not task.done then
      local arguments = task.arguments or { n = 0 }
      task.arguments, task_now = nil, task
      local ok, found = resume(task.co, table.unpack(arguments, 1, arguments.n))
      if not ok and is_mark(found) and found.continue then
        restart(found.input)
      elseif not ok then
        if raw_type(found) ~= "table" or not is_mark(found) then
          found = raw_set({ mistake = raw_type(found) == "string" and found or "an error that is no text: fail(...) ends a workflow" }, Mark)
        end
        if found.mistake or found.refuse then raw_error(found, 0) end
        settle(task, nil, found)
      elseif status(task.co) == "dead" then
        settle(task, found)
      end
    end
  end
end
local function describe()
  local open = {}
  for name in pairs(run.armed) do open[#open + 1] = "timer '" .. name .. "'" end
  for name in pairs(run.awaited) do open[#open + 1] = "signal '" .. name .. "'" end
  for number, one in pairs(run.begun) do open[#open + 1] = "'" .. one.name .. "' (call " .. number .. ")" end
  return #open > 0 and table.concat(open, ", ") or "nothing"
end
local function lost(event)
  mistake(raw_format("NondeterminismError: entry %s is %s '%s', and the replayed code waits for %s; a change under running instances goes behind patched()",
    raw_tostring(event.seq or "?"), kinds[event.kind] or "?", raw_tostring(event.name), describe()))
end
local function feed(event)
  if event.kind == 1 then
    begin_main(event.payload or {})
  elseif event.kind == 2 then
    local future = run.armed[event.name] or lost(event)
    run.armed[event.name] = nil
    run.timers = without(run.timers, future)
    settle(future)
  elseif event.kind == 3 then
    if not run.awaited[event.name] then lost(event) end
    run.awaited[event.name] = nil
    for i, row in ipairs(run.signals) do
      if row.name == event.name then
        table.remove(run.signals, i)
        settle(row.future, event.payload)
        break
      end
    end
  elseif event.kind >= 4 then
    local one = run.begun[event.call]
    if not one or one.name ~= event.name then lost(event) end
    run.begun[event.call] = nil
    run.calls = without(run.calls, one.future)
    one.future.child_id = event.child
    if event.kind == 5 or event.kind == 7 then
      settle(one.future, nil, raw_set({ call = one.name, error = event.payload }, Mark))
    else
      settle(one.future, event.payload)
    end
  end
  go_on()
end

local function finish()
  local failure, answer = run.main.failure, nil
  if failure == nil then
    answer = { ["end"] = 1, value = run.main.value }
  elseif failure.fail or failure.call then
    answer = { ["end"] = 2, value = failure.error }
  else
    raw_error(failure, 0)
  end
  if #run.sends > 0 then answer.sends = run.sends end
  if #run.reduces > 0 then answer.reduces = run.reduces end
  return answer
end
local function put(answer, key, rows) if #rows > 0 then answer[key] = rows end end
local function finish_turn()
  if run.main.done then return finish() end
  local answer, base = { ["end"] = 0, keeps = 1 }, run.numbers
  local dropped, timers, signals, calls = list({}), list({}), list({}), list({})
  local armed, awaited, begun = {}, {}, {}
  for _, row in ipairs(run.timers) do
    armed[row.name] = row.future
    if run.armed[row.name] ~= row.future then timers[#timers + 1] = list({ "arm", row.name, row.due, 0 }) end
  end
  for _, row in ipairs(run.signals) do
    if not awaited[row.name] and not run.awaited[row.name] then
      local values = run.subscriptions[row.name]
      signals[#signals + 1] = list({ "await", row.name, 0, values and values[1] })
    end
    awaited[row.name] = true
  end
  for _, row in ipairs(run.calls) do
    if not row.number then
      run.numbers = run.numbers + 1
      row.number = run.numbers
      calls[#calls + 1] = { name = row.name, args = row.args, key = row.key, spawn = row.spawn }
    end
    begun[row.number] = row
  end
  for name in pairs(run.armed) do if not armed[name] then dropped[#dropped + 1] = list({ "disarm", name, 0 }) end end
  for name in pairs(run.awaited) do if not awaited[name] then dropped[#dropped + 1] = list({ "leave", name, 0 }) end end
  for number in pairs(run.begun) do if not begun[number] then dropped[#dropped + 1] = list({ "end", number }) end end
  run.armed, run.awaited, run.begun = armed, awaited, begun
  put(answer, "timers", timers); put(answer, "signals", signals); put(answer, "calls", calls)
  put(answer, "dropped", dropped); put(answer, "sends", run.sends)
  put(answer, "reduces", run.reduces)
  if not (raw_next(armed) or raw_next(awaited) or raw_next(begun)) then mistake("the workflow waits for nothing") end
  local subscriptions = list({})
  for name, values in pairs(run.subscriptions) do
    for _, value in ipairs(values) do subscriptions[#subscriptions + 1] = list({ "await", name, 0, value }) end
  end
  put(answer, "subscriptions", subscriptions)
  if run.checkpoint then
    run.checkpoint.calls = base
    if raw_next(run.note) then run.checkpoint.note = run.note end
    if raw_next(run.subscriptions) then run.checkpoint.subscriptions = run.subscriptions end
    answer.state = run.checkpoint
  elseif raw_next(run.note) then
    answer.note = run.note
  end
  return answer
end
local function turn(at, note, events, is_replaying)
  begin(at, note, is_replaying)
  for _, event in ipairs(events) do feed(event) end
  return finish_turn()
end
-- The events of each turn: owed ones wait for the turn behind them.
local function replay_all(events)
  local owed = {}
  for _, event in ipairs(events) do
    if event.kind ~= 0 then owed[#owed + 1] = event end
    if event.kind == 0 or not event.owed then
      turn(event.at, event.note, owed, true)
      owed = {}
    end
  end
end
local function resume_from(state)
  begin(state.at, state.note, true)
  run.numbers, run.subscriptions = state.calls or 0, state.subscriptions or {}
  begin_main(state.args)
  go_on()
  finish_turn()
end
local function check_open(open, fresh)
  local function wanted(rows, kind)
    local found = {}
    for _, name in ipairs(rows) do found[name] = true end
    for _, event in ipairs(fresh) do if event.owed and event.kind == kind then found[event.name] = true end end
    return found
  end
  local function differ(a, b)
    for key in pairs(a) do if not b[key] then return true end end
    for key in pairs(b) do if not a[key] then return true end end
  end
  local calls = {}
  for _, row in ipairs(open.calls) do calls[row[1]] = row[2] end
  for _, event in ipairs(fresh) do if event.owed and event.call then calls[event.call] = event.name end end
  if differ(wanted(open.timers, 2), run.armed) or differ(wanted(open.signals, 3), run.awaited) or differ(calls, run.begun) then
    mistake("NondeterminismError: the replayed code waits for " .. describe() .. ", and that is not what is recorded; a change under running instances goes behind patched()")
  end
end

-- ---- Shapes of inputs and payloads ----

local shapes = { any = true, string = true, number = true, integer = true, boolean = true, table = true }
local function kind_of(value)
  return raw_type(value) == "number" and math.type(value) == "integer" and "integer" or raw_type(value)
end
local function fits(value, shape)
  local optional = shape:sub(-1) == "?"
  local word = optional and shape:sub(1, -2) or shape
  if value == nil then return optional or word == "any" end
  return word == "any" or word == kind_of(value) or word == "number" and raw_type(value) == "number"
end
local function check_input(input)
  local wanted = run.type.options.input
  if not wanted then return end
  if raw_type(input) ~= "table" then refuse("the input of '" .. run.type.name .. "': expected an object") end
  for name in pairs(input) do
    if not wanted[name] then refuse("the input of '" .. run.type.name .. "': unknown member '" .. raw_tostring(name) .. "'; expected " .. table.concat(keys_of(wanted), ", ")) end
  end
  for name, shape in pairs(wanted) do
    if not fits(input[name], shape) then
      refuse("the input of '" .. run.type.name .. "': '" .. name .. "': expected " .. shape .. ", found " .. kind_of(input[name]))
    end
  end
end
local function check_payload(event)
  local wanted = run.type.options.signals and run.type.options.signals[event.name]
  if raw_type(wanted) == "string" and not fits(event.payload, wanted) then
    refuse("the payload of '" .. event.name .. "': expected " .. wanted .. ", found " .. kind_of(event.payload))
  end
end

-- ---- The two things that are asked of a state ----

local function new_run(name)
  run = { type = types[name], ready = {}, timers = {}, signals = {}, calls = {}, armed = {}, awaited = {}, begun = {},
          numbers = 0, patches = {}, subscriptions = {}, sends = list({}), reduces = list({}), note = {}, old_note = {} }
end
local function answer(request)
  if not types[request.type] then return { status = 5, message = "the file has no workflow '" .. raw_tostring(request.type) .. "'" } end
  if not run then new_run(request.type) end
  local ok, found = raw_pcall(function()
    if request.check then check_payload(request) return { ["end"] = 0 } end
    if request.state then resume_from(request.state) end
    if request.events then
      replay_all(request.events)
      check_open(request.open, request.fresh)
    end
    run.id = request.id
    local first = request.fresh[1]
    if #request.fresh == 1 and first.kind == 1 then check_input(first.payload or {}) end
    if #request.fresh == 1 and first.kind == 3 and not first.owed then check_payload(first) end
    return turn(request.at, nil, request.fresh, false)
  end)
  if ok then return found end
  if is_mark(found) and found.refuse then return { status = 1, message = raw_tostring(found.refuse):sub(1, 390) } end
  local words = is_mark(found) and found.mistake or raw_tostring(found)
  return { ["end"] = 3, problem = raw_tostring(words):sub(1, 390) }
end

-- Names in quotes behind call, signal, spawn and external are what the file may use.
local function uses_of(options)
  local uses = { signal = {}, call = {}, spawn = {}, external = {} }
  for kind, names in pairs(uses) do
    for name in source:gmatch("%f[%w_]" .. kind .. "%s*%(?%s*[\"']([^\"'\n]+)[\"']") do names[name] = true end
    if kind == "signal" then
      for name in source:gmatch("%f[%w_]subscribe%s*%(%s*[\"']([^\"'\n]+)[\"']") do names[name] = true end
    end
    for key, name in pairs(options[kind .. "s"] or {}) do names[raw_type(key) == "string" and key or name] = true end
  end
  return uses
end
function workflow(name, options, body)
  if raw_type(options) == "function" then options, body = {}, options end
  if raw_type(name) ~= "string" or raw_type(body) ~= "function" or raw_type(options) ~= "table" then
    raw_error("workflow: expected workflow(NAME, function(input) ... end), or with a table of options between them", 2)
  end
  if types[name] then raw_error("workflow: there are two of the name '" .. name .. "'", 2) end
  for _, shape in pairs(options.input or {}) do
    if not shapes[(raw_tostring(shape):gsub("%?$", ""))] then
      raw_error("workflow: input: expected any, string, number, integer, boolean or table, with ? behind it where it may be absent; found '" .. raw_tostring(shape) .. "'", 2)
    end
  end
  types[name] = { name = name, options = options, body = body, uses = uses_of(options) }
  order[#order + 1] = name
end
local function hello()
  if #order == 0 then raw_error("the file has no workflow: expected workflow(\"NAME\", function(input) ... end)", 0) end
  local found = list({})
  for i, name in ipairs(order) do
    local type_of, uses = types[name], types[name].uses
    local source_of = { code = name, version = type_of.options.version or 1, timers = list({}), signals = list(keys_of(uses.signal)), vars = list({}), replay = true }
    local kept = list({})
    for _, name in ipairs(type_of.options.kept or source_of.signals) do kept[#kept + 1] = name end
    if #kept > 0 then source_of.buffered = kept end
    for member, kind in pairs({ calls = "call", externals = "external", children = "spawn" }) do
      if raw_next(uses[kind]) then source_of[member] = list(keys_of(uses[kind])) end
    end
    local retries = list({})
    for called, policy in pairs(type_of.options.retries or {}) do
      retries[#retries + 1] = { call = called, max = policy.max or 3, first = milliseconds(policy.first or 1), longest = milliseconds(policy.longest or 60), final = list(policy.final or {}) }
    end
    if #retries > 0 then source_of.retries = retries end
    found[i] = source_of
  end
  return { pawl = 1, types = found }
end

coroutine, next, load, rawset, rawget, rawequal, rawlen = nil, nil, nil, nil, nil, nil, nil
return hello, answer
