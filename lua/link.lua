-- A link between two network namespaces, for machines whose kernel has no netem: rate, buffer, delay,
-- jitter and loss, each way.
--
-- It joins two tap devices: it reads the frames that one namespace sends into its device, and writes
-- them into the other's when they are due. It is run in the namespace of the first device, and lives
-- in that of the second one afterwards. Frames come one by one: a tap has no segmentation offload.
--
-- The n-th IPv4 packet of a direction is lost or not by the seed alone. They are never reordered.

local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local ffi, bit = require("ffi"), require("bit")
local arguments, system = require("arguments"), require("system")
local C, band, max, min = ffi.C, bit.band, math.max, math.min

local options = arguments.parse(arg, {
   ["name"] = "text", -- of the process
   ["pid-file"] = "text", -- is written when the link is up
   ["device"] = "text", ["far-namespace"] = "text", ["far-device"] = "text",
   ["seed"] = "seed",
   -- What goes to the far device, and what comes from it: in bit/s and bytes, without which there is
   -- no limit; ms; a share.
   ["down-rate"] = "positive", ["down-limit"] = "positive", ["down-delay"] = "number",
   ["down-jitter"] = "number", ["down-loss"] = "number",
   ["up-rate"] = "positive", ["up-limit"] = "positive", ["up-delay"] = "number",
   ["up-jitter"] = "number", ["up-loss"] = "number",
})
arguments.require(options, { "name", "pid-file", "device", "far-namespace", "far-device", "seed" })

ffi.cdef([[
   struct ifreq { char name[16]; short flags; char padding[22]; };
   int open(const char *path, int flags);
   int ioctl(int fd, unsigned long request, struct ifreq *);
   int setns(int fd, int kind);
   int getpid(void);
   int nanosleep(const struct timespec *time, struct timespec *left);
   int read(int fd, void *data, size_t length);
   int write(int fd, const void *data, size_t length);
]])

local READ_WRITE, NONBLOCK, CLOEXEC = 2, 0x800, 0x80000
local TUNSETIFF, TAP, NO_PI = 0x400454ca, 0x2, 0x1000
local NEWNET, SET_NAME = 0x40000000, 15

local function checked(result, what)
   if result < 0 then arguments.die("link: " .. what .. ": " .. system.error_text(ffi.errno())) end
   return result
end

local function tap(device)
   local fd = checked(C.open("/dev/net/tun", READ_WRITE + NONBLOCK + CLOEXEC), "/dev/net/tun")
   local request = ffi.new("struct ifreq")
   ffi.copy(request.name, device, min(#device, 15))
   request.flags = TAP + NO_PI
   checked(C.ioctl(fd, TUNSETIFF, request), device)
   return fd
end

local function enter(namespace)
   local fd = checked(C.open(namespace, CLOEXEC), namespace)
   checked(C.setns(fd, NEWNET), namespace)
   C.close(fd)
end

-- One direction ------------------------------------------------------------------------------------

local SLOTS, ROOM = 8192, 2048 -- frames under way, and bytes of the longest one
local BATCH = 64 -- frames read at once, so that those due meanwhile don't wait for long
-- While frames come and go, they are looked for so often and not waited for: being woken for each of
-- them takes twice the processor's time. What came meanwhile came half of it before on average, and
-- what is due within half of it goes now: so nothing is late or early by more than one.
local PAUSE_US = 150
local EARLY_US = PAUSE_US / 2
local EAGAIN, EINTR = system.EAGAIN, system.EINTR

-- Functions that take what has come, and give what is due. `chance` is this direction's own.
local function direction(from, to, chance, way)
   local rate, limit = options[way .. "-rate"], options[way .. "-limit"]
   local us_per_byte = rate and 8e6 / rate or 0
   local longest_us = rate and limit and limit * us_per_byte or math.huge
   local delay, jitter = (options[way .. "-delay"] or 0) * 1e3, (options[way .. "-jitter"] or 0) * 1e3
   local loss = options[way .. "-loss"] or 0
   local frames, lengths = ffi.new("uint8_t[?]", SLOTS * ROOM), ffi.new("int[?]", SLOTS)
   local due_at = ffi.new("double[?]", SLOTS)
   local head, tail = 0, 0
   local free_at, last_due = 0, 0 -- when the bottleneck is idle again; of the frame before

   -- How many have been read, which came `before` us ago on average: BATCH where there may be more.
   local function take(before)
      for count = 1, BATCH do
         local slot = band(tail, SLOTS - 1)
         local frame = frames + slot * ROOM
         local length = C.read(from, frame, ROOM)
         if length < 0 then
            local problem = ffi.errno()
            if problem == EAGAIN then return count - 1 end
            if problem ~= EINTR then checked(length, "reading a device") end
         elseif not (frame[12] == 8 and frame[13] == 0) then
            C.write(to, frame, length) -- no IPv4, such as ARP: who is where is not what is measured
         else
            local now = system.now_us() - before
            local is_lost = loss > 0 and chance.draw() <= loss
            local later = jitter > 0 and (2 * chance.draw() - 1) * jitter or 0
            local begin = max(now, free_at)
            local fits = begin - now + length * us_per_byte <= longest_us and tail - head < SLOTS - 1
            if not is_lost and fits then
               free_at = begin + length * us_per_byte
               last_due = max(last_due, free_at + delay + later)
               due_at[slot], lengths[slot] = last_due, length
               tail = tail + 1
            end
         end
      end
      return BATCH
   end

   -- How many have been written, and when the next one is due, if any.
   local function give(now)
      local before = head
      while head < tail do
         local slot = band(head, SLOTS - 1)
         if due_at[slot] > now + EARLY_US then return head - before, due_at[slot] end
         C.write(to, frames + slot * ROOM, lengths[slot])
         head = head + 1
      end
      return head - before, math.huge
   end

   return take, give
end

-- The link -----------------------------------------------------------------------------------------

local function chance_of(stream)
   local chance = assert(loadfile(folder .. "chance.lua"))() -- its own: two directions don't share it
   chance.seed(options.seed, stream)
   return chance
end

local near = tap(options.device)
enter(options["far-namespace"])
local far = tap(options["far-device"])
local take_down, give_down = direction(near, far, chance_of(0), "down")
local take_up, give_up = direction(far, near, chance_of(1), "up")

local problem = system.prepare(16) -- real-time, too, where it may: what comes late is more delay
if problem then arguments.die("link: " .. problem) end
C.prctl(SET_NAME, ffi.cast("unsigned long", ffi.cast("const char *", options.name)), 0, 0, 0)
local wait = system.waiter(true)
if not (system.watch(near, 1, 0) and system.watch(far, 2, 0)) then checked(-1, "epoll") end

local draft = options["pid-file"] .. ".draft"
local file = assert(io.open(draft, "w"))
file:write(C.getpid(), "\n")
file:close()
assert(os.rename(draft, options["pid-file"]))

local LONGEST_US = 1e6
local pause = ffi.new("struct timespec", 0, PAUSE_US * 1e3)
local before = 0
while true do
   local taken_down, taken_up = take_down(before), take_up(before)
   before = 0
   local now = system.now_us()
   local given_down, next_down = give_down(now)
   local given_up, next_up = give_up(now)
   if taken_down == BATCH or taken_up == BATCH then
      -- There may be more: no time to lose.
   elseif taken_down + taken_up + given_down + given_up > 0 then
      C.nanosleep(pause, nil)
      before = PAUSE_US / 2
   else
      local due = min(next_down, next_up) - EARLY_US - system.now_us()
      wait(max(0, min(due, LONGEST_US)))
   end
end
