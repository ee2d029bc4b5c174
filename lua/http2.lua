-- HTTP/2 (RFC 9113) and HPACK (RFC 7541) as the engine needs them: what goes out and what comes in on
-- a connection, without its socket (multiplex.lua).
--
-- Requests are the texts of HTTP/1.1 that the scripts make. A head goes out in literals without
-- indexing, and the server is told to keep no table either, so that heads can be read one by one. Of
-- an answer's head only :status and Content-Length are looked at.
--
-- Frames that go out are put together in one buffer, for one session at a time: whoever calls submit,
-- reset, preface or feed sends what is pending() before another session is touched, or drops it.
--
-- Whoever loads this file gives it `http`, whose buffer answers are read from, and `die`, which ends
-- the program with a message.

local http, die = ...
local ffi, bit = require("ffi"), require("bit")
local band, rshift, lshift, min = bit.band, bit.rshift, bit.lshift, math.min
local find, sub, char = string.find, string.sub, string.char

local M = {}

ffi.cdef([[
   struct request {
      double due;       // when it was due
      double window;    // bytes of its body that the server takes by now
      double unsent;    // bytes of its body that are not on their way
      double taken;     // bytes of DATA since the last update of its window
      int32_t stream;   // its number on the connection, 0 while it has none
      int32_t began;    // whether any byte of the answer is here
      struct answer answer;
   };
]])

local DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION =
   0, 1, 3, 4, 5, 6, 7, 8, 9
local END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
local NO_ERROR = 0
M.REFUSED_STREAM, M.CANCEL = 7, 8
local FRAME_SIZE = 16384 -- the most in either direction: ours is the protocol's default
local MAX_BLOCK = 2 ^ 18 -- bytes of a head in several frames
local WINDOW, REFILL = 2 ^ 31 - 1, 2 ^ 30 -- what a server may send; it is told of more at half of that
local FIRST_LIMIT = 100 -- streams at once, until the server has said how many

local buffer, bytes = http.buffer, ffi.cast("uint8_t *", http.buffer)

-- What came of a request; multiplex.lua sets them.
M.on_answer = nil -- (session, place): a whole answer
M.on_failure = nil -- (session, place, kind): an answer that won't be whole
M.on_reset = nil -- (session, place, code): the server gave the stream up
M.on_goaway = nil -- (session, last): it takes no stream above `last`, and no further ones

-- Reading heads: HPACK ----------------------------------------------------------------------------

local STATUS_NAME, CONTENT_LENGTH, STATIC = 8, 28, 61
local STATUS = { [8] = 200, [9] = 204, [10] = 206, [11] = 304, [12] = 400, [13] = 404, [14] = 500 }
local NAMES = { [":status"] = STATUS_NAME, ["\184\132\141\54\163"] = STATUS_NAME } -- the latter by Huffman

-- The integer at `at`, whose first byte has it below `mask`; and what follows. nil for a broken one.
local function read_integer(p, at, to, mask)
   local number, factor = band(p[at], mask), 1
   at = at + 1
   if number < mask then return number, at end
   while at < to and factor < 2 ^ 28 do
      local byte = p[at]
      at = at + 1
      number = number + band(byte, 127) * factor
      if byte < 128 then return number, at end
      factor = factor * 128
   end
   return nil
end

-- Digits by HPACK's Huffman code: 0 to 2 have five bits, 3 to 9 have six. nil for anything else.
local function huffman_digits(p, at, to)
   local number, digits, bits, count = 0, 0, 0, 0
   while true do
      if count < 6 and at < to then
         bits, count, at = bits * 256 + p[at], count + 8, at + 1
      end
      local size = 5
      if count < size then break end
      local digit = rshift(bits, count - 5)
      if digit > 2 then
         size = 6
         if count < size then break end
         digit = rshift(bits, count - 6) - 22
         if digit < 3 or digit > 9 then break end
      end
      number, digits = number * 10 + digit, digits + 1
      count = count - size
      bits = band(bits, lshift(1, count) - 1)
   end
   -- What is left is the padding, ones up to the end of the byte.
   if at < to or digits == 0 or count > 7 or bits ~= lshift(1, count) - 1 then return nil end
   return number
end

local function plain_digits(p, at, to)
   local number = 0
   if at == to then return nil end
   for k = at, to - 1 do
      local digit = p[k] - 48
      if digit < 0 or digit > 9 then return nil end
      number = number * 10 + digit
   end
   return number
end

-- Where the string at `at` begins and ends, and whether it is by Huffman's code. nil for a broken one.
local function read_string(p, at, to)
   if at >= to then return nil end
   local is_huffman = p[at] >= 128
   local length, from = read_integer(p, at, to, 127)
   if not length or from + length > to then return nil end
   return from, from + length, is_huffman
end

-- The status and the content length of a head, from `at` to before `to`: 0 and -1 where it has none.
-- nil for what is no head, or needs a table that we said we don't have.
function M.read_head(p, at, to)
   local status, length = 0, -1
   while at < to do
      local byte, index = p[at], nil
      if byte >= 128 then -- an entry of the static table
         index, at = read_integer(p, at, to, 127)
         if not index or index < 1 or index > STATIC then return nil end
         status = STATUS[index] or status
      elseif byte >= 32 and byte < 64 then -- the table's new size
         index, at = read_integer(p, at, to, 31)
         if index ~= 0 then return nil end
      else -- a name that is an entry or a string, and a value. A table without room takes none of them
         index, at = read_integer(p, at, to, byte >= 64 and 63 or 15)
         if not index or index > STATIC then return nil end
         local from, is_huffman
         if index == 0 then
            from, at = read_string(p, at, to)
            if not from then return nil end
            index = at - from < 8 and NAMES[ffi.string(p + from, at - from)] or 0
         end
         from, at, is_huffman = read_string(p, at, to)
         if not from then return nil end
         if index >= STATUS_NAME and index < STATUS_NAME + 7 or index == CONTENT_LENGTH then
            local number = (is_huffman and huffman_digits or plain_digits)(p, from, at)
            if not number then return nil end
            if index == CONTENT_LENGTH then length = number else status = number end
         end
      end
   end
   return status, length
end

-- What goes out ------------------------------------------------------------------------------------

local OUT_SIZE, OUT_GOAL = 131072, 65536 -- bodies are put out up to the goal
local out, out_count = ffi.new("uint8_t[?]", OUT_SIZE), 0
local out_text = ffi.cast("const char *", out)

local function put_32(number)
   out[out_count] = rshift(number, 24)
   out[out_count + 1] = band(rshift(number, 16), 255)
   out[out_count + 2] = band(rshift(number, 8), 255)
   out[out_count + 3] = band(number, 255)
   out_count = out_count + 4
end

-- The head of a frame, with room for all of it.
local function put_frame(s, length, kind, flags, stream)
   if out_count + 9 + length > OUT_SIZE then
      s.unsent = s.unsent .. ffi.string(out, out_count)
      out_count = 0
   end
   put_32(length * 256 + kind)
   out[out_count] = flags
   out_count = out_count + 1
   put_32(stream)
end

local function put_text(text, from, length)
   ffi.copy(out + out_count, ffi.cast("const char *", text) + from, length)
   out_count = out_count + length
end

-- What a session has to send: where it is, and its length.
function M.pending(s)
   if s.unsent == "" then return out_text, out_count end
   if out_count > 0 then
      s.unsent = s.unsent .. ffi.string(out, out_count)
      out_count = 0
   end
   return ffi.cast("const char *", s.unsent), #s.unsent
end

-- So many bytes of that are out.
function M.sent(s, count)
   if s.unsent ~= "" then
      s.unsent = sub(s.unsent, count + 1)
   else
      s.unsent = ffi.string(out + count, out_count - count)
      out_count = 0
   end
end

function M.drop_pending() out_count = 0 end

-- Integers and strings of a head, as texts. The flags of an integer are above its `mask`.
local function integer(number, mask, flags)
   if number < mask then return char(flags + number) end
   local text = char(flags + mask)
   number = number - mask
   while number >= 128 do
      text = text .. char(128 + number % 128)
      number = math.floor(number / 128)
   end
   return text .. char(number)
end
local function literal(text) return integer(#text, 127, 0) .. text end
M.integer, M.literal = integer, literal

local METHODS = { GET = "\130", POST = "\131" }
local SCHEMES = { http = "\134", https = "\135" }
M.scheme = "http"

-- What stands before and after the path in the head of a request, by its method and the lines of its
-- text from the path on.
local encoded = {}
local function encode(method, lines)
   local authority, rest = "", {}
   for name, value in lines:gmatch("\r\n([^:\r\n]+): ?([^\r\n]*)") do
      name = name:lower()
      if name == "host" then
         authority = value
      else
         rest[#rest + 1] = "\0" .. literal(name) .. literal(value)
      end
   end
   local before = (METHODS[method] or "\2" .. literal(method)) .. SCHEMES[M.scheme] .. "\1" .. literal(authority)
   return { before = before .. "\4", after = table.concat(rest) }
end

-- Requests by their place: M.requests and M.texts. There are so many places.
function M.prepare(places)
   M.requests, M.texts = ffi.new("struct request[?]", places), {}
end

-- Send the head of a request on the stream that it has; its body follows by fill().
function M.submit(s, place)
   local text, r = M.texts[place], M.requests[place]
   local method_end = find(text, " ", 1, true)
   local path_end = find(text, " ", method_end + 1, true)
   local stop = find(text, "\r\n\r\n", path_end, true) + 3
   local method, lines = sub(text, 1, method_end - 1), sub(text, path_end, stop)
   local of_method = encoded[method]
   if not of_method then
      of_method = {}
      encoded[method] = of_method
   end
   local parts = of_method[lines]
   if not parts then
      parts = encode(method, lines)
      of_method[lines] = parts
   end
   local path_length = path_end - method_end - 1
   local path_size = integer(path_length, 127, 0)
   local size = #parts.before + #path_size + path_length + #parts.after
   if size > FRAME_SIZE then die("--http 2: the head of a request has more than 16 KB") end
   r.window, r.taken, r.unsent = s.first_window, 0, #text - stop
   put_frame(s, size, HEADERS, END_HEADERS + (r.unsent == 0 and END_STREAM or 0), r.stream)
   put_text(parts.before, 0, #parts.before)
   put_text(path_size, 0, #path_size)
   put_text(text, method_end, path_length)
   put_text(parts.after, 0, #parts.after)
   if r.unsent > 0 then s.sending[#s.sending + 1] = place end
end

-- Put out as much of the bodies as the server takes, if all before that is sent.
function M.fill(s)
   local sending, k = s.sending, 1
   if s.unsent ~= "" then return end
   while sending[k] and out_count < OUT_GOAL do
      local place = sending[k]
      local r, text = M.requests[place], M.texts[place]
      local size = min(r.unsent, r.window, s.window, FRAME_SIZE)
      if size > 0 then
         put_frame(s, size, DATA, r.unsent == size and END_STREAM or 0, r.stream)
         put_text(text, #text - r.unsent, size)
         r.unsent, r.window, s.window = r.unsent - size, r.window - size, s.window - size
      else
         k = k + 1
      end
      if r.unsent == 0 then table.remove(sending, k) end
   end
end

-- A session is one connection. The client's first words wait to be sent.
function M.new()
   return {
      streams = {}, -- places by the numbers of streams
      sending = {}, -- places whose bodies are not out
      unsent = "", -- bytes that the socket didn't take
      kept = "", -- bytes of an incomplete frame
      limit = FIRST_LIMIT, -- streams at once
      window = 65535, -- bytes of bodies that the server takes on the whole connection,
      first_window = 65535, -- and of a new stream
      received = 0, -- bytes of DATA since the last update of the connection's window
      is_greeted = false, -- whether the server's settings are here
      left = 0, padding = 0, place = -1, ends = false, -- of the DATA frame that is being read
   }
end

function M.preface(s)
   put_text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 24)
   put_frame(s, 18, SETTINGS, 0, 0)
   -- HEADER_TABLE_SIZE 0, ENABLE_PUSH 0, INITIAL_WINDOW_SIZE
   put_text("\0\1\0\0\0\0" .. "\0\2\0\0\0\0" .. "\0\4\127\255\255\255", 0, 18)
   put_frame(s, 4, WINDOW_UPDATE, 0, 0)
   put_32(WINDOW - 65535)
end

-- Nothing of this request is of interest any more. Its stream, if it had one, is over.
function M.forget(s, place)
   local r = M.requests[place]
   if s.place == place then s.place = -1 end
   if r.unsent > 0 then
      for k, other in ipairs(s.sending) do
         if other == place then
            table.remove(s.sending, k)
            break
         end
      end
      r.unsent = 0
   end
   s.streams[r.stream] = nil
   r.stream = 0
end

-- Give up a stream.
function M.reset(s, place, code)
   put_frame(s, 4, RST_STREAM, 0, M.requests[place].stream)
   put_32(code)
   M.forget(s, place)
end

-- What comes in -----------------------------------------------------------------------------------

-- Four bytes, of which the highest bit is left out where it means something else.
local function read_32(at) return (bytes[at] * 256 + bytes[at + 1]) * 65536 + bytes[at + 2] * 256 + bytes[at + 3] end
local function read_31(at) return read_32(at) % 2 ^ 31 end

-- The stream of a request has ended.
local function finish(s, place)
   local r = M.requests[place]
   local a = r.answer
   local is_cut = a.left >= 0 and a.left ~= a.length and not http.is_head and a.status ~= 304
   if r.unsent > 0 then -- it needs no more of the body
      M.reset(s, place, NO_ERROR)
   else
      M.forget(s, place)
   end
   if is_cut then return M.on_failure(s, place, "malformed") end
   M.on_answer(s, place)
end

local function take_head(s, stream, ends, p, from, to)
   local status, length = M.read_head(p, from, to)
   if not status then return "malformed" end
   local place = s.streams[stream]
   if not place then return nil end
   local r = M.requests[place]
   local a = r.answer
   r.began = 1
   if a.status >= 200 then -- the trailer
      if not ends then return "malformed" end
   elseif status >= 200 then
      a.status, a.left = status, length
   elseif status == 0 or ends then
      return "malformed"
   end
   if ends then finish(s, place) end
end

-- By the kind of frame: read it, from `at` to before `to`. They return the kind of an error, or nil.
local readers = {}

readers[HEADERS] = function(s, at, to, flags, stream)
   if band(flags, PADDED) ~= 0 then
      if at == to then return "malformed" end
      to, at = to - bytes[at], at + 1
   end
   if band(flags, PRIORITY) ~= 0 then at = at + 5 end
   if at > to or stream == 0 then return "malformed" end
   local ends = band(flags, END_STREAM) ~= 0
   if band(flags, END_HEADERS) ~= 0 then return take_head(s, stream, ends, bytes, at, to) end
   s.block, s.block_stream, s.block_ends = ffi.string(bytes + at, to - at), stream, ends
end

readers[CONTINUATION] = function(s, at, to, flags, stream)
   if not s.block or stream ~= s.block_stream or #s.block > MAX_BLOCK then return "malformed" end
   local block = s.block .. ffi.string(bytes + at, to - at)
   s.block = block
   if band(flags, END_HEADERS) == 0 then return nil end
   s.block = nil
   return take_head(s, stream, s.block_ends, ffi.cast("const uint8_t *", block), 0, #block)
end

readers[RST_STREAM] = function(s, at, to, _, stream)
   if to - at ~= 4 then return "malformed" end
   local place = s.streams[stream]
   if place then
      M.forget(s, place)
      M.on_reset(s, place, read_32(at))
   end
end

readers[SETTINGS] = function(s, at, to, flags, stream)
   if stream ~= 0 or (to - at) % 6 ~= 0 then return "malformed" end
   if band(flags, ACK) ~= 0 then return nil end
   s.is_greeted = true
   while at < to do
      local name, value = bytes[at] * 256 + bytes[at + 1], read_32(at + 2)
      if name == 3 then
         s.limit = value
      elseif name == 4 then -- streams that are open have what is more or less, too
         for _, place in pairs(s.streams) do
            local r = M.requests[place]
            r.window = r.window + value - s.first_window
         end
         s.first_window = value
      end
      at = at + 6
   end
   put_frame(s, 0, SETTINGS, ACK, 0)
end

readers[PUSH_PROMISE] = function() return "malformed" end -- it was told not to

readers[PING] = function(s, at, to, flags)
   if to - at ~= 8 then return "malformed" end
   if band(flags, ACK) ~= 0 then return nil end
   put_frame(s, 8, PING, ACK, 0)
   ffi.copy(out + out_count, bytes + at, 8)
   out_count = out_count + 8
end

readers[GOAWAY] = function(s, at, to)
   if to - at < 8 then return "malformed" end
   M.on_goaway(s, read_31(at))
end

readers[WINDOW_UPDATE] = function(s, at, to, _, stream)
   if to - at ~= 4 then return "malformed" end
   if stream == 0 then
      s.window = s.window + read_31(at)
   elseif s.streams[stream] then
      local r = M.requests[s.streams[stream]]
      r.window = r.window + read_31(at)
   end
end

local function give_window(s, stream, count)
   put_frame(s, 4, WINDOW_UPDATE, 0, stream)
   put_32(count)
end

-- The DATA frame whose head is at `at`. Its bytes are taken as they come, see feed().
local function begin_data(s, at, length, flags, stream)
   local padding = 0
   if band(flags, PADDED) ~= 0 then
      padding = bytes[at + 9] + 1
      if padding > length then return "malformed" end
   end
   s.left, s.padding = length - padding, math.max(0, padding - 1)
   s.place, s.ends = s.streams[stream] or -1, band(flags, END_STREAM) ~= 0
   s.received = s.received + length
   if s.received > REFILL then
      give_window(s, 0, s.received)
      s.received = 0
   end
   if s.place < 0 then return nil end
   local r = M.requests[s.place]
   if r.answer.status < 200 then return "malformed" end -- no head before it
   r.taken = r.taken + length
   if r.taken > REFILL then
      give_window(s, stream, r.taken)
      r.taken = 0
   end
end

-- Take in what is in the buffer from 0 to before `to`. Returns the kind of an error, nil where there is
-- none, and how many bytes before `to` are an incomplete frame, to be put in front of what comes next.
-- "http1": the server doesn't speak HTTP/2.
function M.feed(s, to)
   local at, is_data = 0, s.left + s.padding > 0
   while true do
      if is_data then
         local there = min(s.left, to - at)
         if there > 0 and s.place >= 0 then http.take_body(M.requests[s.place].answer, at, there) end
         s.left, at = s.left - there, at + there
         there = min(s.padding, to - at)
         s.padding, at = s.padding - there, at + there
         if s.left + s.padding > 0 then return nil, 0 end
         if s.ends and s.place >= 0 then finish(s, s.place) end
         s.place, is_data = -1, false
      end
      if to - at < 9 then return nil, to - at end
      local length = bytes[at] * 65536 + bytes[at + 1] * 256 + bytes[at + 2]
      local kind, flags, stream = bytes[at + 3], bytes[at + 4], read_31(at + 5)
      if not s.is_greeted and kind ~= SETTINGS then
         return ffi.string(buffer + at, 5) == "HTTP/" and "http1" or "malformed", 0
      end
      if length > FRAME_SIZE or (s.block and kind ~= CONTINUATION) then return "malformed", 0 end
      local problem
      if kind == DATA then
         local head = band(flags, PADDED) ~= 0 and 10 or 9
         if to - at < head then return nil, to - at end
         problem, is_data = begin_data(s, at, length, flags, stream), true
         at = at + head
      else
         if to - at < 9 + length then return nil, to - at end
         local read = readers[kind]
         if read then problem = read(s, at + 9, at + 9 + length, flags, stream) end
         at = at + 9 + length
      end
      if problem then return problem, 0 end
   end
end

return M
