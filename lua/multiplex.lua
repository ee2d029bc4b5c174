-- The engine's connections over HTTP/2: each of them carries several requests at once.
--
-- A request under way has a place. There are `each` places for every one of the pool's connections, so
-- a place that is free is a stream that is free. A connection takes no further requests when the
-- server says so (GOAWAY), when it has carried as many as it may, and when it seems dead. The next
-- request then opens another in its stead, while the first one waits for the answers that are due.
--
-- Requests that the server has certainly not looked at are sent again on another connection, as every
-- client does. They keep the time when they were due.
--
-- Whoever loads this file gives it the engine's modules, settings and functions.

local engine = ...
local http, http2, system, tls = engine.http, engine.http2, engine.system, engine.tls
local ffi, bit = require("ffi"), require("bit")
local C, band, bor = ffi.C, bit.band, bit.bor
local now_us, tally = system.now_us, engine.tally

local M = {}

local CLOSED, CONNECTING, HANDSHAKE, OPEN = 0, 1, 2, 3
local GONE = bor(system.RDHUP, system.HUP, system.ERR)
local MOST = 2 ^ 29 -- requests on a connection: numbers of streams end at 2^31

local POOL, PLACES, SIP, SIP_US = engine.pool, engine.pool * engine.each, engine.sip, engine.sip_us
local requests, texts
local session_of = {} -- by place, of the requests under way
local current = {} -- the session that takes requests, by the number of a connection of the pool
local sessions, free_ids = {}, {} -- by number; numbers of those that are closed
local greeted = 0 -- sessions on which the server has shown that it speaks HTTP/2

local start_waiting, lost

function M.prepare()
   http2.prepare(PLACES)
   requests, texts = http2.requests, http2.texts
end

-- Opening and closing -----------------------------------------------------------------------------

local function close(s)
   if s.ssl then tls.free(s.number, s.ssl) end
   C.close(s.fd)
   sessions[s.id], s.state, s.ssl = nil, CLOSED, nil
   free_ids[#free_ids + 1] = s.id
   http2.drop_pending()
end

-- It takes no more requests.
local function retire(s)
   s.is_retired = true
   if current[s.number] == s then current[s.number] = nil end
end

-- A new session in the stead of a connection of the pool, or nil and the kind of an error.
local function open(number)
   local fd, problem = engine.open_socket()
   if fd < 0 then return nil, engine.connect_kind(problem) end
   tally.opened = tally.opened + 1
   local s = http2.new()
   s.fd, s.state, s.number, s.serial = fd, CONNECTING, number, tally.opened % 2 ^ 31
   s.may_carry, s.carried, s.served, s.next_stream = math.min(engine.lifetime(), MOST), 0, 0, 1
   s.under_way, s.waiting, s.again = 0, {}, {} -- requests: all, those without a stream, those for another session
   s.heard, s.sipped, s.is_paused, s.has_ended = 0, 0, false, false
   s.id = table.remove(free_ids) or #sessions + 1
   sessions[s.id], current[number] = s, s
   system.watch(fd, s.id, s.serial) -- what is ready by now is an event, too
   return s
end

-- Requests ----------------------------------------------------------------------------------------

-- The request has left its session.
local function leave(s, place)
   session_of[place] = nil
   s.under_way = s.under_way - 1
end

local function fail(s, place, kind)
   leave(s, place)
   engine.failed(place, requests[place].due, kind)
end

-- Give a request to the session that takes those of its connection. That session, or nil if there is
-- none to be had, and the request has failed.
local function assign(place)
   local number = place % POOL
   local s, problem = current[number], nil
   if not s then
      s, problem = open(number)
      if not s then return engine.failed(place, requests[place].due, problem) end
   end
   local r = requests[place]
   r.stream, r.began, r.unsent = 0, 0, 0
   session_of[place] = s
   s.under_way, s.carried = s.under_way + 1, s.carried + 1
   s.waiting[#s.waiting + 1] = place
   if s.carried >= s.may_carry then retire(s) end
   if s.state == OPEN then start_waiting(s) end
   return s
end

-- Requests without a stream get one, as far as the server allows.
function start_waiting(s)
   while s.waiting[1] and s.under_way - #s.waiting < s.limit do
      local place = table.remove(s.waiting, 1)
      local r = requests[place]
      http.begin(r.answer)
      r.stream, r.began, s.streams[s.next_stream] = s.next_stream, 0, place
      s.next_stream = s.next_stream + 2
      http2.submit(s, place)
   end
end

-- Requests that the server has not looked at go to another session.
local function move_on(s)
   while s.again[1] do
      local place = table.remove(s.again, 1)
      tally.retried = tally.retried + 1
      local other = assign(place)
      if other and other.state == OPEN then M.flush(other) end
   end
end

-- Where no session had an answer before it ended, the next one would have none either.
local function again_or_fail(s, place, has_progress, kind)
   if has_progress then
      leave(s, place)
      s.again[#s.again + 1] = place
   else
      fail(s, place, kind)
   end
end

-- The connection is gone, and the requests on it have failed; but those are sent again that the server
-- closed it on before it began with any of them.
function lost(s, kind)
   if s.state == CLOSED then return end
   if s.under_way == 0 and not s.is_retired then tally.closed_idle = tally.closed_idle + 1 end
   retire(s)
   close(s)
   local may_be_stale = s.served > 0 and (kind == "closed" or kind == "read" or kind == "write")
   for place = s.number, PLACES - 1, POOL do
      if session_of[place] == s then
         http2.forget(s, place)
         again_or_fail(s, place, may_be_stale and requests[place].began == 0, kind)
      end
   end
   s.waiting = {}
   move_on(s)
end

-- Answers -----------------------------------------------------------------------------------------

http2.on_answer = function(s, place)
   local r = requests[place]
   s.served = s.served + 1
   leave(s, place)
   engine.answered(place, r.due, texts[place], r.answer)
end

http2.on_failure = fail

http2.on_reset = function(s, place, code)
   -- It takes fewer at once than it had said by then.
   if code == http2.REFUSED_STREAM and s.is_leaving then
      again_or_fail(s, place, s.served > 0, "reset")
   elseif code == http2.REFUSED_STREAM and s.under_way - #s.waiting > 1 then
      s.limit = s.under_way - #s.waiting - 1
      tally.retried = tally.retried + 1
      table.insert(s.waiting, 1, place)
   else
      fail(s, place, "reset")
   end
end

http2.on_goaway = function(s, last)
   retire(s)
   s.is_leaving = true
   for place = s.number, PLACES - 1, POOL do
      local stream = requests[place].stream
      if session_of[place] == s and (stream == 0 or stream > last) then
         http2.forget(s, place)
         again_or_fail(s, place, last > 0 or s.served > 0, "closed")
      end
   end
   s.waiting = {}
end

-- Reading and writing -----------------------------------------------------------------------------

local function write(s, from, length)
   if tls then return tls.write(s.ssl, from, length) end
   local sent = C.send(s.fd, from, length, 0x4000) -- MSG_NOSIGNAL
   if sent >= 0 then return sent end
   return 0, ffi.errno() ~= system.EAGAIN and "write" or nil
end

local function receive(s, at, room)
   if tls then return tls.read(s.ssl, http.buffer + at, room) end
   local got = C.recv(s.fd, http.buffer + at, room, 0)
   if got > 0 then return got end
   if got == 0 then return 0, "closed" end
   return 0, ffi.errno() ~= system.EAGAIN and "read" or nil
end

-- Send what is to be sent, as far as the socket takes it. The kind of an error, or nil.
local function send_pending(s)
   while true do
      http2.fill(s)
      local from, length = http2.pending(s)
      if length == 0 then return nil end
      local sent, problem = write(s, from, length)
      http2.sent(s, sent)
      if problem or sent == 0 then return problem end
   end
end

-- Nothing that speaks HTTP/2 is there.
local function no_http2(s)
   return lost(s, greeted == 0 and engine.no_http2() or "malformed")
end

-- Take what came. The kind of an error, or nil.
local function read(s, has_closed)
   if s.is_paused then
      s.has_ended = s.has_ended or has_closed
      return nil
   end
   while true do
      local kept = #s.kept
      local room = SIP and SIP - s.sipped or http.SIZE - kept
      local got, problem = receive(s, kept, room)
      if problem then return problem end
      if got == 0 then return nil end
      tally.bytes, s.heard = tally.bytes + got, now_us()
      if kept > 0 then ffi.copy(http.buffer, s.kept, kept) end
      local was_greeted, left = s.is_greeted, nil
      problem, left = http2.feed(s, kept + got)
      if s.is_greeted and not was_greeted then greeted = greeted + 1 end
      if problem then return problem end
      s.kept = left > 0 and ffi.string(http.buffer + kept + got - left, left) or ""
      if SIP then
         s.sipped = s.sipped + got
         if s.sipped >= SIP then
            s.sipped, s.is_paused = 0, true
            engine.sipping:add(s.id, s.serial, now_us() + SIP_US)
            return nil
         end
      end
      -- A short read has drained the socket, but a library's buffer or an EOF may remain.
      if not tls and not has_closed and got < room then return nil end
   end
end

-- Send what is to be sent after something happened, and end what is over.
function M.flush(s)
   local problem = send_pending(s)
   -- The server's reason may be there already.
   if problem then problem = read(s, true) or problem end
   if problem == "http1" then return no_http2(s) end
   if problem then return lost(s, problem) end
   if s.is_retired and s.under_way == 0 then close(s) end
end

local function take(s, has_closed)
   local problem = read(s, has_closed)
   if problem == "http1" then return no_http2(s) end
   if problem then
      http2.drop_pending()
      return lost(s, problem)
   end
   start_waiting(s)
   M.flush(s)
   move_on(s)
end

local function opened(s)
   s.state, s.heard = OPEN, now_us()
   http2.preface(s)
   start_waiting(s)
   M.flush(s)
end

local function handshake(s)
   local done = tls.handshake(s.ssl)
   if done ~= true then
      if done then lost(s, done) end
      return
   end
   if tls.resumed(s.ssl) then tally.resumed = tally.resumed + 1 end
   if tls.protocol(s.ssl) ~= "h2" then return no_http2(s) end
   opened(s)
end

local function connected(s, flags)
   if band(flags, bor(system.ERR, system.HUP)) ~= 0 then
      return lost(s, engine.connect_kind(system.connect_error(s.fd)))
   end
   if not tls then return opened(s) end
   s.ssl, s.state = tls.new(s.number, s.fd), HANDSHAKE
   handshake(s)
end

-- What the engine calls ---------------------------------------------------------------------------

function M.give(place, due, text)
   requests[place].due, texts[place] = due, text
   local s = assign(place)
   if s and s.state == OPEN then M.flush(s) end
end

function M.handle(id, serial, flags)
   local s = sessions[id]
   if not s or s.serial ~= serial then return end
   if s.state == CONNECTING then
      connected(s, flags)
   elseif s.state == HANDSHAKE then
      handshake(s)
   end
   -- The edge is used up, so what it said of answers must be read now.
   if s.state == OPEN then take(s, band(flags, GONE) ~= 0) end
end

-- There may be far more places than requests, so it is those that are gone through.
local function each_under_way(visit)
   for _, s in pairs(sessions) do
      for _, place in pairs(s.streams) do visit(place) end
      for _, place in ipairs(s.waiting) do visit(place) end
   end
end

-- Of requests under way, the due times.
function M.each_unanswered(visit)
   each_under_way(function(place) visit(requests[place].due) end)
end

-- A request that takes too long gives its stream up. A connection on which nothing came since it was
-- due takes no more of them: it may be dead.
local function time_out(s, place)
   local r = requests[place]
   if r.stream > 0 then
      http2.reset(s, place, http2.CANCEL)
   else
      for k, other in ipairs(s.waiting) do
         if other == place then
            table.remove(s.waiting, k)
            break
         end
      end
   end
   if s.heard < r.due then retire(s) end
   fail(s, place, "timeout")
   if s.state == OPEN then
      start_waiting(s)
      M.flush(s)
   elseif s.under_way == 0 then
      retire(s)
      close(s)
   end
end

function M.end_timed_out(now, limit)
   local late = {} -- first, since ending one begins others
   each_under_way(function(place)
      if now - requests[place].due > limit then late[#late + 1] = place end
   end)
   for _, place in ipairs(late) do
      local s = session_of[place] -- the connection may have gone with another one
      if s then time_out(s, place) end
   end
end

-- The pause of a slow reader is over.
function M.go_on(id, serial)
   local s = sessions[id]
   if not s or s.serial ~= serial then return end
   s.is_paused = false
   take(s, s.has_ended)
end

return M
