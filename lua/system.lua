-- What the engine asks of Linux: clocks, addresses, sockets, and waiting for events.

local ffi, bit = require("ffi"), require("bit")
local C, floor = ffi.C, math.floor

local M = {}

-- struct epoll_event is packed on x86_64 only. Written in 32-bit words it needs no attribute, and
-- reading it makes no boxed 64-bit number. The data word holds a connection's number and its serial.
ffi.cdef(ffi.arch == "x64" and [[
   struct epoll_event { uint32_t events; int32_t id; int32_t serial; };
]] or [[
   struct epoll_event { uint32_t events; uint32_t padding; int32_t id; int32_t serial; };
]])

-- Where C has ssize_t or size_t for what is small here: int as the result, for the same reason.
ffi.cdef([[
   struct timespec { long sec; long nsec; };
   struct itimerspec { struct timespec interval, value; };
   struct timeval { long sec; long usec; };
   struct rusage { struct timeval user, system; long rest[14]; };
   struct rlimit { unsigned long soft, hard; };
   struct addrinfo {
      int flags, family, socktype, protocol; uint32_t addrlen; void *addr; char *name;
      struct addrinfo *next;
   };
   int clock_gettime(int clock, struct timespec *time);
   int getrusage(int who, struct rusage *usage);
   int getrlimit(int resource, struct rlimit *limit);
   int setrlimit(int resource, const struct rlimit *limit);
   int sched_setscheduler(int pid, int policy, const int *priority);
   int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
   void *signal(int number, void *handler);
   char *strerror(int number);
   const char *gai_strerror(int number);
   int getaddrinfo(const char *host, const char *port, const struct addrinfo *, struct addrinfo **);
   int epoll_create1(int flags);
   int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
   int epoll_wait(int epoll, struct epoll_event *events, int size, int timeout_ms);
   int epoll_pwait2(int epoll, struct epoll_event *events, int size, const struct timespec *, void *);
   int timerfd_create(int clock, int flags);
   int timerfd_settime(int fd, int flags, const struct itimerspec *, void *);
   int socket(int family, int type, int protocol);
   int bind(int fd, const void *address, uint32_t length);
   int connect(int fd, const void *address, uint32_t length);
   int setsockopt(int fd, int level, int name, const int *value, uint32_t length);
   int getsockopt(int fd, int level, int name, int *value, uint32_t *length);
   int send(int fd, const char *data, size_t length, int flags);
   int recv(int fd, char *data, size_t length, int flags);
   int close(int fd);
]])

-- Clocks, in us ------------------------------------------------------------------------------------

local REALTIME, MONOTONIC = 0, 1
local time = ffi.new("struct timespec")

local function clock_us(clock)
   C.clock_gettime(clock, time)
   return tonumber(time.sec) * 1e6 + tonumber(time.nsec) / 1e3
end

function M.now_us() return clock_us(MONOTONIC) end

-- How far the time of day is ahead of the other clock: it changes when somebody sets the time.
function M.time_of_day_us() return clock_us(REALTIME) - clock_us(MONOTONIC) end

local usage = ffi.new("struct rusage")
function M.cpu_us()
   C.getrusage(0, usage)
   local user, system = usage.user, usage.system
   return tonumber(user.sec + system.sec) * 1e6 + tonumber(user.usec + system.usec)
end

-- The process --------------------------------------------------------------------------------------

function M.error_text(number) return ffi.string(C.strerror(number)) end

-- Make timers exact, writing to a closed connection harmless, and room for so many sockets. What is
-- wrong, nil where nothing is.
function M.prepare(sockets)
   local SIGPIPE, IGNORE, SET_TIMERSLACK, NOFILE = 13, ffi.cast("void *", 1), 29, 7
   C.signal(SIGPIPE, IGNORE) -- SSL_write has no MSG_NOSIGNAL
   C.prctl(SET_TIMERSLACK, 1, 0, 0, 0) -- else timers are 50 us late
   -- Whoever else is at work here, a request that is due is sent: else it waits for a processor for
   -- milliseconds, now and then, and the server gets the blame. Not everybody may; and the kernel
   -- leaves a twentieth of each second to others.
   local FIFO = 1
   C.sched_setscheduler(0, FIFO, ffi.new("int[1]", 1))
   local limit = ffi.new("struct rlimit")
   C.getrlimit(NOFILE, limit)
   limit.soft = limit.hard
   C.setrlimit(NOFILE, limit)
   if tonumber(limit.soft) < sockets then
      return "needs " .. sockets .. " open files, and this host allows " .. tonumber(limit.soft) .. " (ulimit -n)"
   end
end

-- The first address of a host: pointer, size, family. nil and the reason where there is none.
function M.address(host, port)
   local hints, found = ffi.new("struct addrinfo", { socktype = 1 }), ffi.new("struct addrinfo *[1]")
   local problem = C.getaddrinfo(host, port, hints, found)
   if problem ~= 0 then return nil, host .. ": " .. ffi.string(C.gai_strerror(problem)) end
   return found[0].addr, found[0].addrlen, found[0].family
end

-- Sockets ------------------------------------------------------------------------------------------

M.EAGAIN, M.EINPROGRESS, M.EINTR = 11, 115, 4
local one, value, size = ffi.new("int[1]", 1), ffi.new("int[1]"), ffi.new("uint32_t[1]", 4)

-- Begin to connect: the socket, or -1 and the number of the error. `source` is where the connection
-- comes from: {address, size}, or nil. A receive buffer of `buffer` bytes, or the system's own.
function M.open(address, address_size, family, source, buffer)
   local fd = C.socket(family, 0x80801, 0) -- SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
   if fd < 0 then return -1, ffi.errno() end
   C.setsockopt(fd, 6, 1, one, 4) -- TCP_NODELAY
   if buffer then
      value[0] = buffer
      C.setsockopt(fd, 1, 8, value, 4) -- SO_RCVBUF
   end
   if source then
      C.setsockopt(fd, 0, 24, one, 4) -- IP_BIND_ADDRESS_NO_PORT: a port is taken for one peer only
      if C.bind(fd, source[1], source[2]) ~= 0 then
         local problem = ffi.errno()
         C.close(fd)
         return -1, problem
      end
   end
   if C.connect(fd, address, address_size) ~= 0 then
      local problem = ffi.errno()
      if problem ~= M.EINPROGRESS then
         C.close(fd)
         return -1, problem
      end
   end
   return fd
end

-- Why a connection could not be made: the number of the error.
function M.connect_error(fd)
   C.getsockopt(fd, 1, 4, value, size) -- SOL_SOCKET, SO_ERROR
   return value[0]
end

-- Waiting ------------------------------------------------------------------------------------------

M.IN, M.OUT, M.ERR, M.HUP, M.RDHUP = 1, 4, 8, 16, 0x2000
-- Edges of both directions: a connection is registered once for its life.
local EDGES = bit.bor(M.IN, M.OUT, M.RDHUP, bit.lshift(1, 31)) % 2 ^ 32 -- EPOLLET
local TIMER = -1000
local ADD, MODIFY = 1, 3
local MAX_EVENTS = 64 -- few, so that slots which come due meanwhile don't wait for long
M.events = ffi.new("struct epoll_event[?]", MAX_EVENTS)

local epoll = C.epoll_create1(0x80000) -- EPOLL_CLOEXEC
local event = ffi.new("struct epoll_event")

local function register(operation, fd, id, serial)
   event.events, event.id, event.serial = EDGES, id, serial
   return C.epoll_ctl(epoll, operation, fd, event) == 0
end
function M.watch(fd, id, serial) return register(ADD, fd, id, serial) end
function M.watch_as(fd, id, serial) return register(MODIFY, fd, id, serial) end

-- epoll_pwait2 (Linux 5.11, glibc 2.35) waits for nanoseconds; a timerfd does it with one more call.
local pause, timer, timer_value = ffi.new("struct timespec"), -1, ffi.new("struct itimerspec")

local function wait_pwait2(us)
   pause.sec, pause.nsec = floor(us / 1e6), floor(us % 1e6 * 1e3)
   return C.epoll_pwait2(epoll, M.events, MAX_EVENTS, pause, nil)
end

local function wait_timerfd(us)
   if us < 1 then return C.epoll_wait(epoll, M.events, MAX_EVENTS, 0) end
   timer_value.value.sec, timer_value.value.nsec = floor(us / 1e6), floor(us % 1e6 * 1e3)
   C.timerfd_settime(timer, 0, timer_value, nil)
   return C.epoll_wait(epoll, M.events, MAX_EVENTS, -1)
end

-- The function that waits up to so many us, and returns the number of events or -1.
function M.waiter(may_pwait2)
   local ENOSYS = 38
   local has_pwait2 = pcall(function() return C.epoll_pwait2 end)
   if may_pwait2 and has_pwait2 and not (wait_pwait2(0) < 0 and ffi.errno() == ENOSYS) then return wait_pwait2 end
   timer = C.timerfd_create(MONOTONIC, 0x80800) -- TFD_NONBLOCK | TFD_CLOEXEC
   M.watch(timer, TIMER, 0)
   return wait_timerfd
end

return M
