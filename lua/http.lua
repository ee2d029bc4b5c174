-- Reading the answers of an HTTP/1.1 server out of a buffer, however they were cut on their way.

local ffi, bit = require("ffi"), require("bit")
local C, bor = ffi.C, bit.bor

local M = {}

ffi.cdef([[
   struct answer {
      double left;      // bytes left of the body or chunk; see read_chunk_line()
      double length;    // bytes of the body so far
      int32_t phase;
      int32_t status;
      int32_t closing;  // the server said that it would close
      uint32_t check;   // CRC-32 of the body so far, where it is asked for
   };
   char *memmem(const char *in, size_t in_length, const char *what, size_t length);
   char *memchr(const char *in, int byte, size_t length);
   int strncasecmp(const char *a, const char *b, size_t length);
   unsigned long crc32(unsigned long check, const char *data, unsigned int length);
]])

local HEAD, BODY, CHUNK_SIZE, CHUNK_EXTENSION, CHUNK, TRAILER, UNTIL_CLOSE = 0, 1, 2, 3, 4, 5, 6
M.UNTIL_CLOSE = UNTIL_CLOSE
M.is_head = false -- whether requests are HEAD, whose answers have the head of a body and no body
M.HEAD_SIZE = 8192 -- a longer head is malformed
M.SIZE = 131072
local buffer = ffi.new("char[?]", M.SIZE)
M.buffer = buffer

function M.begin(a) a.phase, a.status, a.closing, a.left, a.length, a.check = HEAD, 0, 0, 0, 0, 0 end

-- CRC-32 by zlib, of every body from now on. Whether there is a zlib.
local zlib
function M.check_bodies()
   local found, library = pcall(ffi.load, "libz.so.1")
   if found then zlib = library end -- which stays loaded while something refers to it
   return found
end

local function take_body(a, at, count)
   a.length = a.length + count
   if zlib then a.check = tonumber(zlib.crc32(a.check, buffer + at, count)) end
end
M.take_body = take_body

local function is_header(at, name) return C.strncasecmp(buffer + at, name, #name) == 0 end

local function is_digit(at) return buffer[at] >= 48 and buffer[at] <= 57 end

-- The number of a Content-Length, whose value begins at `at`. nil for anything else.
local function read_length(at)
   while buffer[at] == 32 or buffer[at] == 9 do at = at + 1 end
   if not is_digit(at) then return nil end
   local length = 0
   while is_digit(at) do
      length = length * 10 + buffer[at] - 48
      at = at + 1
   end
   while buffer[at] == 32 or buffer[at] == 9 do at = at + 1 end
   if buffer[at] ~= 13 then return nil end
   return length
end

-- Read the head that is in the buffer from `from` to before `to`. Whether it is one.
local function read_head(a, from, to)
   if to - from < 16 or not is_header(from, "HTTP/1.") then return false end
   if not (is_digit(from + 9) and is_digit(from + 10) and is_digit(from + 11)) then return false end
   local length, chunked = -1, false
   a.status = (buffer[from + 9] - 48) * 100 + (buffer[from + 10] - 48) * 10 + buffer[from + 11] - 48
   a.closing = buffer[from + 7] == 48 and 1 or 0 -- HTTP/1.0 closes unless it says otherwise
   local at = from
   while true do
      at = tonumber(C.memchr(buffer + at, 10, to - at) - buffer) + 1
      if at >= to - 2 then break end
      local letter = bor(buffer[at], 32)
      if letter == 99 then -- c
         if is_header(at, "content-length:") then
            length = read_length(at + 15)
            if not length then return false end
         elseif is_header(at, "connection: close") then
            a.closing = 1
         elseif is_header(at, "connection: keep-alive") then
            a.closing = 0
         end
      elseif letter == 116 and is_header(at, "transfer-encoding: chunked") then -- t
         chunked = true
      end
   end
   if a.status == 204 or a.status == 304 or M.is_head then length, chunked = 0, false end
   if chunked then
      a.phase, a.left = CHUNK_SIZE, 0
   elseif length >= 0 then
      a.phase, a.left = BODY, length
   else
      a.phase, a.left, a.closing = UNTIL_CLOSE, 0, 1
   end
   return true
end

-- The lines of a chunked body, byte by byte. `left` is the size read so far, or in the trailer how
-- long the line is. Returns where to go on; nil for a malformed one.
local function read_chunk_line(a, at, to)
   while at < to do
      local byte = buffer[at]
      at = at + 1
      if byte == 10 then
         if a.phase == TRAILER then
            if a.left == 0 then
               a.phase = BODY -- with nothing left
               return at
            end
            a.left = 0
         elseif a.left > 0 then
            a.phase = CHUNK
            return at
         else
            a.phase = TRAILER
         end
      elseif a.phase == TRAILER then
         if byte ~= 13 then a.left = a.left + 1 end
      elseif byte == 59 then -- ;
         a.phase = CHUNK_EXTENSION
      elseif a.phase == CHUNK_SIZE and byte ~= 13 then
         local digit = byte - 48
         if digit > 9 then digit = bor(byte, 32) - 87 end
         if digit < 0 or digit > 15 then return nil end
         a.left = a.left * 16 + digit
      end
   end
   return at
end

-- The line end after a chunk is two bytes that `left` counts below zero.
local function end_chunk_line(a, at, to)
   local skipped = math.min(2 + a.left, to - at)
   a.left = a.left - skipped
   if a.left == -2 then a.phase, a.left = CHUNK_SIZE, 0 end
   return at + skipped
end

-- Take in what is in the buffer from 0 to before `to`. Returns "complete", "malformed", or "more";
-- and how many bytes before `to` are an incomplete head, to be put in front of what comes next.
function M.feed(a, to)
   local at = 0
   while true do
      local phase = a.phase
      if phase == HEAD then
         local found = C.memmem(buffer + at, to - at, "\r\n\r\n", 4)
         if found == nil then
            if to - at > M.HEAD_SIZE then return "malformed", 0 end
            return "more", to - at
         end
         local after = tonumber(found - buffer) + 4
         if not read_head(a, at, after) then return "malformed", 0 end
         if a.status < 200 then a.phase = HEAD end
         at = after
      elseif phase == BODY or (phase == CHUNK and a.left > 0) then
         local there = math.min(a.left, to - at)
         take_body(a, at, there)
         a.left, at = a.left - there, at + there
         if phase == BODY and a.left == 0 then return at < to and "malformed" or "complete", 0 end
      elseif phase == CHUNK then
         at = end_chunk_line(a, at, to)
      elseif phase == UNTIL_CLOSE then
         take_body(a, at, to - at)
         return "more", 0
      else
         at = read_chunk_line(a, at, to)
         if not at then return "malformed", 0 end
      end
      if at == to and not (a.phase == BODY and a.left == 0) then return "more", 0 end
   end
end

return M
