-- intop's load generator: an open loop over HTTP/1.1 or HTTP/2, one thread, for LuaJIT 2.1 on Linux.
--
-- Requests are due at slots that never move. Each goes out on an idle connection of the pool; where
-- none is idle it waits. A latency counts from when the request was due, so it holds the wait, the
-- connect and the TLS handshake where the request needed them. In a closed loop (--arrivals closed)
-- there are no slots: a request is due as soon as a connection is idle. Recorded arrivals have slots
-- and paths in a file (--slots), each stream its own ones. Every request that was due in
-- the counted part has one place in the histogram (see finish()):
--
--   answered         the time from when it was due to the last byte of its answer
--   failed           the timeout, or the time that it waited if that is longer
--   pending          unanswered at the end: the time that it has waited until then
--
-- The requests themselves come from a script for wrk2, such as slt.lua. One process sends one stream;
-- several classes of clients and several generators are several streams, see intop/hosts/load.py.
--
--   luajit engine.lua --script slt.lua --url http://10.0.0.1:80 --rate 2000 --duration 5 \
--       --connections 64 --seed 1 -- --paths paths.txt
--
-- Times are microseconds of CLOCK_MONOTONIC, as doubles.

local here = (arg[0]:match("^(.*/)") or "./")
local arguments = dofile(here .. "arguments.lua")
local chance = dofile(here .. "chance.lua")
local histograms = dofile(here .. "histogram.lua")
local json = dofile(here .. "json.lua")
local queues = dofile(here .. "queues.lua")
local system = dofile(here .. "system.lua")
local http = dofile(here .. "http.lua")

local ffi, bit = require("ffi"), require("bit")
local C, band, bor, floor = ffi.C, bit.band, bit.bor, math.floor
local now_us, count, die = system.now_us, histograms.count, arguments.die

local SCHEMA = 2

-- Arguments ----------------------------------------------------------------------------------------

local options, script_args = arguments.parse(arg, {
   script = "text", -- where the requests come from; what stands after `--` is for it
   url = "text", -- scheme, host and port
   rate = "positive", -- requests a second; closed loops and recorded arrivals have none
   duration = "positive", -- counted seconds
   warmup = "number", -- seconds before them, on the same connections
   drain = "number", -- seconds after them in which answers are waited for, and nothing is sent; intop's are 1.5
   connections = "count",
   http = "text", -- 1.1 or 2
   concurrent = "count", -- requests that a connection of HTTP/2 carries at once
   timeout = "positive", -- seconds from when a request was due
   seed = "seed",
   arrivals = "text", -- constant, poisson, recorded or closed
   slots = "text", -- for recorded arrivals: file of "US PATH" lines, times since the first slot in their order
   stream = "count", -- number of this stream, from 0 on, of so many:
   streams = "count",
   ["start-at"] = "positive", -- seconds of this host's time of day: the first slot of the first stream
   requests = "positive", -- on each connection; 1: a new one for each request
   geometric = "flag", -- that many on average
   think = "number", -- seconds that a connection stays idle after an answer
   read = "positive", -- bytes a second that a connection reads at most
   source = "text", -- address that connections come from
   resume = "flag", -- TLS sessions are resumed
   expect = "text", -- file of "PATH LENGTH CRC32" lines: what answers have to be ("-" for any)
   ["late-ms"] = "positive", -- end as soon as more than late-count requests are certain to be later
   ["late-count"] = "count",
   fetch = "flag", -- instead of a load: ask for each path of --paths once, and say what came
   paths = "text", -- for --fetch
   header = "texts", -- for --fetch: "Name: value"; a load's are its script's
   timerfd = "flag", -- wait by a timerfd, as on kernels before 5.11
})
arguments.require(options, { "url", "seed" })
local arrivals = options.arrivals or "constant"
local is_closed, is_recorded = arrivals == "closed", arrivals == "recorded"
if not (is_closed or is_recorded or arrivals == "constant" or arrivals == "poisson") then
   die("--arrivals must be constant, poisson, recorded or closed, not '" .. arrivals .. "'")
end
if not options.fetch then arguments.require(options, { "script", "duration", "connections" }) end
if not (options.fetch or is_closed or is_recorded) then arguments.require(options, { "rate" }) end
if is_closed and options.rate then die("--rate: a closed loop has none") end
if is_recorded then arguments.require(options, { "slots" }) end
if is_recorded and options.rate then die("--rate: recorded arrivals have none") end
if options.slots and not is_recorded then die("--slots needs --arrivals recorded") end
local protocol = options.http or "1.1"
if protocol ~= "1.1" and protocol ~= "2" then die("--http must be 1.1 or 2, not '" .. protocol .. "'") end
if options.concurrent and protocol ~= "2" then die("--concurrent needs --http 2") end
if options["late-ms"] or options["late-count"] then arguments.require(options, { "late-ms", "late-count" }) end

local scheme, authority = options.url:match("^(https?)://([^/]+)/?$")
if not scheme then die("--url must be http[s]://HOST[:PORT], not '" .. options.url .. "'") end
local tls = scheme == "https" and dofile(here .. "tls.lua") or nil
local host, port = authority:match("^%[(.+)%]:?(%d*)$")
if not host then host, port = authority:match("^([^:]+):?(%d*)$") end
if not host then die("--url: no host in '" .. options.url .. "'") end
if port == "" then port = tls and "443" or "80" end

local POOL = options.fetch and 1 or options.connections
local EACH = protocol == "2" and not options.fetch and options.concurrent or 1
local PLACES = POOL * EACH -- requests that can be under way at once
local TIMEOUT_US = (options.timeout or 10) * 1e6
local STREAM, STREAMS = options.stream or 0, options.streams or 1
local THINK_US = (options.think or 0) * 1e6
local REQUESTS, IS_GEOMETRIC = options.requests or math.huge, options.geometric
-- A slow reader takes so many bytes at a time, and has a receive buffer as small as that: else the
-- kernel would read for it.
local SIP = options.read and math.max(1024, math.min(16384, floor(options.read / 10)))
local SIP_US = options.read and SIP / options.read * 1e6
if POOL < 1 then die("--connections must be at least 1") end
if EACH < 1 then die("--concurrent must be at least 1") end
if STREAM >= STREAMS then die("--stream must be below --streams") end

-- Requests -----------------------------------------------------------------------------------------

-- What the scripts see of wrk2: they run under both.
wrk = { engine = true, scheme = scheme, host = host, port = port, method = "GET", path = "/", headers = {} }
function wrk.format(method, path, headers, body)
   headers, body = headers or wrk.headers, body or wrk.body
   local lines, has_host = {}, false
   for name, value in pairs(headers) do
      lines[#lines + 1] = name .. ": " .. value
      has_host = has_host or name:lower() == "host"
   end
   table.sort(lines)
   if not has_host then table.insert(lines, 1, "Host: " .. authority) end
   if body then lines[#lines + 1] = "Content-Length: " .. #body end
   local start = (method or wrk.method) .. " " .. (path or wrk.path) .. " HTTP/1.1"
   return start .. "\r\n" .. table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or "")
end

-- The same request as the last one of its connection. The server closes then, so that its port is
-- the one that stays in TIME_WAIT: the generator's would run out at 470 connections a second.
local function as_last(text)
   local stop = text:find("\r\n\r\n", 1, true)
   return text:sub(1, stop + 1) .. "Connection: close\r\n" .. text:sub(stop + 2)
end

-- What the answer to a text has to be: {length, check}, each nil where anything goes.
local expected = {}
local function read_expected(file)
   local lines, problem = io.open(file)
   if not lines then die("--expect: " .. problem) end
   local is_checked = false
   for line in lines:lines() do
      local path, length, check = line:match("^(/%S*) (%S+) (%S+)$")
      if not path then die("--expect: not PATH LENGTH CRC32: '" .. line .. "'") end
      expected[wrk.format(nil, path)] = { tonumber(length), tonumber(check) }
      is_checked = is_checked or tonumber(check) ~= nil
   end
   lines:close()
   if is_checked and not http.check_bodies() then die("--expect: checking contents needs libz.so.1 (Debian: zlib1g)") end
end

local fetched, next_path, since = {}, 0, 0
local function fetch_requests()
   arguments.require(options, { "paths" })
   arguments.add_headers(options, wrk.headers)
   local lines, problem = io.open(options.paths)
   if not lines then die("--paths: " .. problem) end
   for line in lines:lines() do fetched[#fetched + 1] = { path = line } end
   lines:close()
   if not http.check_bodies() then die("--fetch needs libz.so.1 (Debian: zlib1g)") end
   return function()
      next_path, since = next_path + 1, now_us()
      return wrk.format(nil, fetched[next_path].path)
   end
end

-- When the requests of recorded arrivals are due, and the numbers of their paths.
local slots_due, slots_path = {}, {}
local taken = 0 -- of them, from the queue
local function read_slots(file)
   local lines, problem = io.open(file)
   if not lines then die("--slots: " .. problem) end
   local last, count = 0, 0
   for line in lines:lines() do
      local due, path = line:match("^(%d+) (%d+)$")
      if not due then die("--slots: not US PATH: '" .. line .. "'") end
      due, path, count = tonumber(due), tonumber(path), count + 1
      if due < last then die("--slots: line " .. count .. " is due before the one above") end
      if path < 1 then die("--slots: line " .. count .. ": paths count from 1") end
      slots_due[count], slots_path[count], last = due, path, due
   end
   lines:close()
end

local function script_requests()
   dofile(options.script)
   intop_thread_id = STREAM
   local args = { [0] = options.script, "--seed", tostring(options.seed), "--threads", tostring(STREAMS) }
   for _, word in ipairs(script_args) do args[#args + 1] = word end
   init(args)
   http.is_head = wrk.method == "HEAD"
   if not is_recorded then return request end
   return function() return request(slots_path[taken]) end
end

local next_text

local function lifetime() return IS_GEOMETRIC and chance.geometric(REQUESTS) or REQUESTS end

-- What is counted ----------------------------------------------------------------------------------

local latencies, lags = histograms.new(), histograms.new()
local errors = {}
for kind in ([[
   refused reset unreachable ports connect tls write read closed malformed timeout status content
]]):gmatch("%S+") do errors[kind] = 0 end
local due_count, answered, on_time, failed, pending, warmup_due, warmup_failed = 0, 0, 0, 0, 0, 0, 0
local queued, lingering = 0, 0
local tally = { bytes = 0, opened = 0, resumed = 0, closed_idle = 0, retried = 0 }
local counted_from, finish = 0, math.huge
local LATE_US = options["late-ms"] and options["late-ms"] * 1e3 or math.huge
local late, late_known = 0, 0 -- of those that are over; with those that wait, at the last look

local queue = queues.new() -- when the requests were due that wait for a place, in that order
local function take()
   taken = taken + 1
   return queue:take()
end

-- Connections --------------------------------------------------------------------------------------

ffi.cdef([[
   struct connection {
      double due;          // when the request that it carries was due
      double requests;     // how many requests it may carry
      void *ssl;
      int32_t fd, state;
      int32_t serial;      // of the socket: events and pauses of an earlier one are dropped
      int32_t served;      // requests answered on it
      int32_t written;     // bytes of the request that are out
      int32_t kept;        // bytes of an incomplete head, in `heads`
      int32_t began;       // whether any byte of the answer is here
      int32_t sipped;      // bytes that a slow reader took since its last pause
      int32_t paused;      // a slow reader that reads on later
      int32_t ended;       // the server closed, which a paused reader has not read yet
      struct answer answer;
   };
]])
local CLOSED, CONNECTING, HANDSHAKE, SENDING, WAITING, IDLE = 0, 1, 2, 3, 4, 5
local LINGERING = -1 -- instead of a connection's number, in an event
local GONE = bor(system.RDHUP, system.HUP, system.ERR)

local connections = ffi.new("struct connection[?]", POOL)
local texts = {} -- of each connection by its number
local heads = ffi.new("char[?]", POOL * http.HEAD_SIZE)
local buffer = http.buffer
local address, address_size, family, source

-- Free places for requests: a ring. Put back at its end, they take turns. Over HTTP/1.1 a place is a
-- connection, open or not; over HTTP/2 it is one of the streams of a connection, see multiplex.lua.
local free, free_first, free_count = ffi.new("int32_t[?]", PLACES), 0, PLACES
for i = 0, PLACES - 1 do free[i] = i end

local function free_take()
   local i = free[free_first]
   free_first = free_first + 1
   if free_first == PLACES then free_first = 0 end
   free_count = free_count - 1
   return i
end

local function free_put(i)
   local at = free_first + free_count
   free[at >= PLACES and at - PLACES or at] = i
   free_count = free_count + 1
end

local thinking, sipping = queues.new_pauses(), queues.new_pauses()

local function close_connection(i, c)
   if c.ssl ~= nil then
      tls.free(i, c.ssl)
      c.ssl = nil
   end
   if c.fd >= 0 then C.close(c.fd) end
   c.fd, c.state, c.served, c.kept, c.sipped, c.paused, c.ended = -1, CLOSED, 0, 0, 0, 0, 0
end

-- The server closes first, see as_last(). One that doesn't is closed when the run ends.
local function close_after_server(i, c, has_closed)
   if not has_closed and lingering < POOL and system.watch_as(c.fd, LINGERING, c.fd) then
      lingering = lingering + 1
      c.fd = -1
   end
   close_connection(i, c)
end

local function count_failure(due, kind, now)
   if options.fetch then
      fetched[next_path].problem = kind
      return
   end
   if due < counted_from then
      warmup_failed = warmup_failed + 1
      return
   end
   errors[kind] = errors[kind] + 1
   failed = failed + 1
   local place = math.max(now - due, TIMEOUT_US)
   count(latencies, place)
   if place > LATE_US then late = late + 1 end
end

local open
local multiplex -- the connections over HTTP/2, nil over HTTP/1.1

local function fail(i, c, kind)
   -- The server closed it as the request went out: every client tries again, on a new connection.
   local is_stale = c.served > 0 and c.began == 0 and (kind == "closed" or kind == "read" or kind == "write")
   close_connection(i, c)
   if is_stale then
      tally.retried = tally.retried + 1
      return open(i, c)
   end
   count_failure(c.due, kind, now_us())
   free_put(i)
end

local CONNECT_KINDS = {
   [99] = "ports", [101] = "unreachable", [104] = "reset", [110] = "timeout", [111] = "refused", [113] = "unreachable",
}
local function connect_kind(number) return CONNECT_KINDS[number] or "connect" end
local function fail_connect(i, c, number) fail(i, c, connect_kind(number)) end

local function send_request(i, c)
   local text = c.served + 1 >= c.requests and as_last(texts[i]) or texts[i]
   local from, length = ffi.cast("const char *", text) + c.written, #text - c.written
   local sent, problem
   if tls then
      sent, problem = tls.write(c.ssl, from, length)
   else
      sent = C.send(c.fd, from, length, 0x4000) -- MSG_NOSIGNAL
      if sent < 0 then
         problem = ffi.errno() ~= system.EAGAIN and "write" or nil
         sent = 0
      end
   end
   -- An answer may be there already, such as a server's refusal of a body: it is read first.
   if problem then return fail(i, c, problem) end
   c.written = c.written + sent
   c.state = sent == length and WAITING or SENDING
end

local function open_socket() return system.open(address, address_size, family, source, SIP) end

-- A new connection for the request that it has.
function open(i, c)
   http.begin(c.answer)
   c.written, c.kept, c.began = 0, 0, 0
   local fd, problem = open_socket()
   if fd < 0 then return fail_connect(i, c, problem) end
   tally.opened = tally.opened + 1
   c.fd, c.state, c.serial, c.requests = fd, CONNECTING, tally.opened % 2 ^ 31, lifetime()
   system.watch(fd, i, c.serial) -- what is ready by now is an event, too
end

local function give(i, due)
   if multiplex then return multiplex.give(i, due, next_text()) end
   local c = connections[i]
   c.due = due
   texts[i] = next_text()
   if c.state == IDLE then
      http.begin(c.answer)
      c.written, c.kept, c.began = 0, 0, 0
      send_request(i, c)
   else
      open(i, c)
   end
end

local function handshake(i, c)
   local done = tls.handshake(c.ssl)
   if done == true then
      if tls.resumed(c.ssl) then tally.resumed = tally.resumed + 1 end
      return send_request(i, c)
   end
   if done then fail(i, c, "tls") end
end

local function connected(i, c, flags)
   if band(flags, bor(system.ERR, system.HUP)) ~= 0 then return fail_connect(i, c, system.connect_error(c.fd)) end
   if not tls then return send_request(i, c) end
   c.ssl, c.state = tls.new(i, c.fd), HANDSHAKE
   handshake(i, c)
end

-- Answers ------------------------------------------------------------------------------------------

-- What is wrong with a complete answer: the error's kind, nil where nothing is.
local function wrong(text, a)
   if a.status >= 400 then return "status" end
   local right = expected[text]
   if right and (right[1] and right[1] ~= a.length or right[2] and right[2] ~= a.check) then return "content" end
end

-- The answer to the request of a place is whole.
local function count_answer(i, due, text, a)
   local now, kind = now_us(), wrong(text, a)
   if options.fetch then
      local one = fetched[next_path]
      one.status, one.length, one.check, one.us = a.status, a.length, a.check, now - since
   end
   -- Answers that are under way at the end are as many as those of the warm-up at the beginning, so the
   -- rate is that of all that come in between.
   if not kind and now >= counted_from and now <= finish then on_time = on_time + 1 end
   if kind then
      count_failure(due, kind, now)
   elseif due >= counted_from then
      answered = answered + 1
      count(latencies, now - due)
      if now - due > LATE_US then late = late + 1 end
   end
   if THINK_US > 0 then
      thinking:add(i, 0, now + THINK_US)
   else
      free_put(i)
   end
end

local function complete(i, c, has_closed)
   count_answer(i, c.due, texts[i], c.answer)
   c.served = c.served + 1
   if c.answer.closing == 1 or c.served >= c.requests then
      close_after_server(i, c, has_closed)
   else
      c.state = IDLE
   end
end

-- Nothing or an error where bytes were expected.
local function no_bytes(i, c, problem)
   if c.state == IDLE then
      tally.closed_idle = tally.closed_idle + 1
      close_connection(i, c)
   elseif problem == "closed" and c.answer.phase == http.UNTIL_CLOSE then
      complete(i, c, true)
   else
      fail(i, c, problem)
   end
end

local function read_answer(i, c, has_closed)
   if c.paused == 1 then
      if has_closed then c.ended = 1 end
      return
   end
   while true do
      local kept = c.kept
      local room = SIP and SIP - c.sipped or http.SIZE - kept
      if kept > 0 then ffi.copy(buffer, heads + i * http.HEAD_SIZE, kept) end
      local got, problem
      if tls then
         got, problem = tls.read(c.ssl, buffer + kept, room)
      else
         got = C.recv(c.fd, buffer + kept, room, 0)
         if got == 0 then problem = "closed" end
         if got < 0 then
            problem = ffi.errno() ~= system.EAGAIN and "read" or nil
            got = 0
         end
      end
      if problem then return no_bytes(i, c, problem) end
      if got == 0 then return end
      if c.state == IDLE then return no_bytes(i, c, "malformed") end -- an answer to nothing
      tally.bytes, c.began = tally.bytes + got, 1
      local state, left = http.feed(c.answer, kept + got)
      if state == "complete" then return complete(i, c, has_closed) end
      if state == "malformed" then return fail(i, c, "malformed") end
      c.kept = left
      if left > 0 then ffi.copy(heads + i * http.HEAD_SIZE, buffer + kept + got - left, left) end
      if SIP then
         c.sipped = c.sipped + got
         if c.sipped == SIP then
            c.sipped, c.paused = 0, 1
            return sipping:add(i, c.serial, now_us() + SIP_US)
         end
      end
      -- A short read has drained the socket, but a library's buffer or an EOF may remain.
      if not tls and not has_closed and got < room then return end
   end
end

local function handle(i, c, flags)
   local state = c.state
   if state == CONNECTING then
      connected(i, c, flags)
   elseif state == HANDSHAKE then
      handshake(i, c)
   elseif state == SENDING then
      send_request(i, c)
   elseif state ~= CLOSED then
      return read_answer(i, c, band(flags, GONE) ~= 0)
   end
   -- The edge is used up, so what it said of answers must be read now.
   if (c.state == WAITING or c.state == SENDING) and band(flags, bor(system.IN, GONE)) ~= 0 then
      read_answer(i, c, band(flags, GONE) ~= 0)
   end
end

-- HTTP/2 ------------------------------------------------------------------------------------------

local function no_http2()
   if options.fetch then return "http2" end
   die(authority .. " doesn't offer HTTP/2. nginx does with `listen ... http2`, from 1.25.1 on with `http2 on`")
end

if protocol == "2" then
   local http2 = assert(loadfile(here .. "http2.lua"))(http, die)
   http2.scheme = scheme
   multiplex = assert(loadfile(here .. "multiplex.lua"))({
      http = http, http2 = http2, system = system, tls = tls, tally = tally,
      pool = POOL, each = EACH, sip = SIP, sip_us = SIP_US, sipping = sipping,
      lifetime = lifetime, open_socket = open_socket, connect_kind = connect_kind, no_http2 = no_http2,
      answered = count_answer,
      failed = function(place, due, kind)
         count_failure(due, kind, now_us())
         free_put(place)
      end,
   })
end

-- By the clock -------------------------------------------------------------------------------------

local function end_pauses(now)
   local i = thinking:take(now)
   while i do
      free_put(i)
      i = thinking:take(now)
   end
   local serial
   i, serial = sipping:take(now)
   while i do
      if multiplex then
         multiplex.go_on(i, serial)
      else
         local c = connections[i]
         if c.serial == serial and c.paused == 1 then
            c.paused = 0
            read_answer(i, c, c.ended == 1)
         end
      end
      i, serial = sipping:take(now)
   end
end

local function end_timed_out(now)
   while queue.count > 0 and now - queue:at(0) > TIMEOUT_US do count_failure(take(), "timeout", now) end
   if multiplex then return multiplex.end_timed_out(now, TIMEOUT_US) end
   for i = 0, POOL - 1 do
      local c = connections[i]
      if c.state ~= CLOSED and c.state ~= IDLE and now - c.due > TIMEOUT_US then fail(i, c, "timeout") end
   end
end

-- Of requests that were due and have no answer, the due times.
local function each_unanswered(visit)
   for k = 0, queue.count - 1 do visit(queue:at(k)) end
   if multiplex then return multiplex.each_unanswered(visit) end
   for i = 0, POOL - 1 do
      local c = connections[i]
      if c.state ~= CLOSED and c.state ~= IDLE then visit(c.due) end
   end
end

-- Whether more requests than allowed are certain to be late: those that were, and those that wait
-- for longer by now.
local function is_too_late(now)
   if LATE_US == math.huge then return false end
   local all = late
   each_unanswered(function(due)
      if due >= counted_from and now - due > LATE_US then all = all + 1 end
   end)
   late_known = all
   return all > options["late-count"]
end

-- Run ----------------------------------------------------------------------------------------------

local wait, started, ended, cpu_used, clock_step_us, was_stopped

local function set_up()
   local problem = system.prepare(2 * POOL + 20)
   if problem then die(problem) end
   if tls then
      problem = tls.prepare(host, options.resume, multiplex and "\2h2\8http/1.1")
      if problem then die(problem) end
   end
   address, address_size, family = system.address(host, port)
   if not address then die("--url: " .. address_size) end
   if options.source then
      local from, size = system.address(options.source, "0")
      if not from then die("--source: " .. size) end
      source = { from, size }
   end
   for i = 0, POOL - 1 do connections[i].fd = -1 end
   if multiplex then multiplex.prepare() end
   wait = system.waiter(not options.timerfd)
   chance.seed(options.seed, STREAM)
   if is_recorded then read_slots(options.slots) end
   next_text = options.fetch and fetch_requests() or script_requests()
   if options.expect then read_expected(options.expect) end
   require("jit.opt").start("maxtrace=4000", "maxmcode=8192", "maxrecord=8000")
end

-- When the first slot is: soon, or when all streams were told to begin.
local function first_slot()
   if not options["start-at"] then return now_us() + 10000 end
   local at = options["start-at"] * 1e6 - system.time_of_day_us()
   if at < now_us() then die("--start-at has passed by " .. floor((now_us() - at) / 1000) .. " ms") end
   return at
end

local function run()
   local step = 1e6 / (options.rate or 1)
   local is_poisson = arrivals == "poisson"
   local slot, now = 0, now_us()
   -- Slots of several streams of one rate lie evenly between each other.
   started = first_slot() + ((is_poisson or is_recorded) and 0 or STREAM / STREAMS * step)
   counted_from = started + (options.warmup or 0) * 1e6
   finish = options.fetch and started + 1 or counted_from + options.duration * 1e6
   local give_up = finish + (options.fetch and TIMEOUT_US or (options.drain or 0) * 1e6)
   local next_due, next_check = is_closed and math.huge or started, started
   local function after(due)
      slot = slot + 1
      if options.fetch then return slot < #fetched and started or math.huge end
      if is_recorded then return started + (slots_due[slot] or math.huge) end
      return is_poisson and due - math.log(chance.draw()) * step or started + slot * step
   end
   if is_poisson or is_recorded then next_due = after(started) end
   local function is_due(due, late_us)
      if due >= counted_from then
         due_count = due_count + 1
         count(lags, late_us)
      else
         warmup_due = warmup_due + 1
      end
   end
   local cpu_before, clock_before = system.cpu_us(), system.time_of_day_us()
   collectgarbage()
   collectgarbage("stop") -- the loop hardly allocates; steps are taken below, some 10 us each
   while true do
      now = now_us()
      while next_due <= now and next_due < finish do
         queue:add(next_due)
         is_due(next_due, now - next_due)
         if next_due >= counted_from and queue.count > free_count then queued = queued + 1 end
         next_due = after(next_due)
      end
      if is_closed and now >= started and now < finish then
         -- What fails at once is tried again after the next wait, or nobody else's turn would come.
         for _ = 1, free_count do
            is_due(now, 0)
            queue:add(now)
         end
      end
      while queue.count > 0 and free_count > 0 do give(free_take(), take()) end
      if now >= finish and (now >= give_up or queue.count + PLACES - free_count - thinking:count() == 0) then break end
      if now >= next_check then
         next_check = now + 100000
         end_timed_out(now)
         was_stopped = is_too_late(now)
         if was_stopped then break end
         collectgarbage("step", 0)
      end
      local goal = next_due < finish and next_due or now < finish and finish or give_up
      if is_closed and now < started then goal = started end
      local found = wait(math.max(0, math.min(goal, next_check, thinking:next_over(), sipping:next_over()) - now_us()))
      if found < 0 and ffi.errno() ~= system.EINTR then die("epoll: " .. system.error_text(ffi.errno())) end
      for k = 0, found - 1 do
         local event = system.events[k]
         local i = event.id
         if multiplex and i >= 0 then
            multiplex.handle(i, event.serial, event.events)
         elseif i >= 0 then
            local c = connections[i]
            if c.serial == event.serial and c.state ~= CLOSED then handle(i, c, event.events) end
         elseif i == LINGERING and band(event.events, GONE) ~= 0 then
            C.close(event.serial)
            lingering = lingering - 1
         end
      end
      if thinking:count() + sipping:count() > 0 then end_pauses(now_us()) end
   end
   ended = now_us()
   cpu_used, clock_step_us = system.cpu_us() - cpu_before, system.time_of_day_us() - clock_before
end

-- Result -------------------------------------------------------------------------------------------

local function count_pending()
   each_unanswered(function(due)
      if due >= counted_from then
         pending = pending + 1
         count(latencies, ended - due)
      end
   end)
end

local function print_fetched()
   for _, one in ipairs(fetched) do
      print(json.object({
         path = json.text(one.path), status = one.status or 0, length = one.length or 0, crc32 = one.check or 0,
         us = one.us or 0, problem = json.text(one.problem or ""),
      }))
   end
end

local function print_result()
   print(json.object({
      schema = SCHEMA, script = json.text(options.script:match("([^/]+)%.lua$") or options.script),
      counted_us = math.min(ended, finish) - counted_from, run_us = ended - started,
      due = due_count, answered = answered, on_time = on_time, failed = failed, pending = pending,
      late = late_known, stopped = tostring(was_stopped or false),
      warmup_due = warmup_due, warmup_failed = warmup_failed, bytes = tally.bytes,
      opened = tally.opened, resumed = tally.resumed, closed_idle = tally.closed_idle, retried = tally.retried,
      queued = queued,
      errors = json.object(errors), cpu_us = cpu_used, clock_step_us = clock_step_us,
      histogram = json.pairs(histograms.counts(latencies)), lags = json.pairs(histograms.counts(lags)),
   }))
end

set_up()
run()
if options.fetch then
   print_fetched()
else
   count_pending()
   print_result()
end
os.exit(0)
