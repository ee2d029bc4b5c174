-- What slt.lua and dlt.lua share: arguments, pacing, and the result as one line of JSON.
--
-- The same files run under wrk2 (constant rate by its own -R) and under wrk, a closed loop that they
-- give a rate and a histogram from due time ("Pacing"). The scripts load this file from their own
-- directory.
--
-- Arguments come after `--`, see command() in intop/hosts/load.py:
--   --seed N       0 .. 2^32-1; each thread draws from its own sequence
--   --threads N    as -t; threads stagger their slots and keep their URLs apart
--   --pace         under wrk only, with one connection for each thread: hold --rate
--   --rate R       requests per second over all threads; only with --pace
--   --late-ms L    with --late-count K, only with --pace: end the run as soon as more than K
--                  requests are certain to be answered more than L ms after they were due
--
-- Why not under wrk2: there a request is due by the connection it goes out on, which request() is
-- not told, so which of them are late can't be known; and the first 10 s don't count.
--
-- Timeouts differ: wrk counts an answer that took --timeout or longer as one, wrk2 counts one for
-- each waiting connection every 2 s. The latency is in the histogram with both. Requests that are
-- unanswered at the end are counted by neither.

local M = {}

local SCHEMA = 1
local MAX_THREADS = 1024
local MAX_SEED = 2 ^ 32 - 1
local PERCENTILES = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p99_9", 99.9 } }

-- wrk2 scans its histogram for every rank that is asked for, 10 to 100 us each.
local MAX_RANK_QUERIES = 50000

-- Print one line and end before the first request. error() would not do: wrk prints errors of the
-- main chunk and then goes on with its default request at full speed.
local function die(message)
   io.stderr:write("intop.lua: ", message, "\n")
   os.exit(2)
end
M.die = die

-- Arguments --------------------------------------------------------------------------------------

local readers = {}

function readers.text(name, text)
   if text == "" then die("--" .. name .. " is empty") end
   return text
end

function readers.positive(name, text)
   local number = tonumber(text)
   if not number or not (number > 0 and number < math.huge) then
      die("--" .. name .. " must be a positive number, not '" .. text .. "'")
   end
   return number
end

function readers.threads(name, text)
   local number = readers.positive(name, text)
   if number % 1 ~= 0 or number > MAX_THREADS then
      die("--" .. name .. " must be a whole number up to " .. MAX_THREADS .. ", not '" .. text .. "'")
   end
   return number
end

function readers.count(name, text)
   local number = tonumber(text)
   if not number or number % 1 ~= 0 or number < 0 or number == math.huge then
      die("--" .. name .. " must be a whole number from 0 on, not '" .. text .. "'")
   end
   return number
end

function readers.seed(name, text)
   local number = tonumber(text)
   if not number or number % 1 ~= 0 or number < 0 or number > MAX_SEED then
      die("--" .. name .. " must be a whole number from 0 to 2^32-1, not '" .. text .. "'")
   end
   return number
end

local function parse(args, kinds)
   local options, i = {}, 1
   while args[i] do
      local name = args[i]:match("^%-%-(.+)$")
      local kind = name and kinds[name]
      if not kind then die("unknown argument '" .. args[i] .. "'") end
      if options[name] ~= nil then die("argument --" .. name .. " given twice") end
      if kind == "flag" then
         options[name] = true
      else
         i = i + 1
         if not args[i] then die("argument --" .. name .. " needs a value") end
         options[name] = readers[kind](name, args[i])
      end
      i = i + 1
   end
   return options
end

local function require_options(options, names)
   for _, name in ipairs(names) do
      if options[name] == nil then die("missing argument --" .. name) end
   end
end

local function is_wrk2() return wrk.time_us ~= nil end

-- wrk without delay() would send as fast as it can; wrk2 has no delay() to call.
local function check_pace(options)
   if options.pace and is_wrk2() then die("--pace is for wrk; wrk2 holds its rate by -R") end
   if not options.pace and not is_wrk2() then die("wrk needs --pace and --rate to hold a rate") end
   if options.rate and not options.pace then die("--rate needs --pace") end
   if options.pace then require_options(options, { "rate" }) end
   if options["late-ms"] or options["late-count"] then
      if not options.pace then die("--late-ms and --late-count need --pace") end
      require_options(options, { "late-ms", "late-count" })
   end
end

-- Pacing -----------------------------------------------------------------------------------------

local function monotonic_ms_clock()
   local ffi = require("ffi")
   ffi.cdef([[
      struct intop_timespec { long tv_sec; long tv_nsec; };
      int clock_gettime(int clock, struct intop_timespec *time);
   ]])
   local CLOCK_MONOTONIC = 1
   local time = ffi.new("struct intop_timespec")
   return function()
      ffi.C.clock_gettime(CLOCK_MONOTONIC, time)
      return tonumber(time.tv_sec) * 1e3 + tonumber(time.tv_nsec) / 1e6
   end
end

-- Each thread has one connection, whose requests are due at slots `step` apart that never move, as
-- wrk2 has it. So a request that waits for the answer to the one before is late by that, and a
-- stall is followed by its whole backlog.
--
-- All slots count from one start, which the first thread sets: so the requests of all connections are
-- evenly spaced. From starts of their own they would come in a pattern of bursts, another one in each
-- run, and P99 would vary with it. A connection's slots before it was open are nobody's.
--
-- wrk calls delay() when an answer is complete (and once before the first request), and request()
-- when it sends. An error makes it call request() again without delay(): the slot stays, and its
-- request's latency goes on. wrk's timers have whole milliseconds and may be early by almost two:
-- then a latency counts from when it was sent. `took` is told of each latency, and how far (ms) the
-- next slot is in the past.
local function pacer(rate, threads, id, starts, now_ms, took)
   local step = 1000 * threads / rate
   local slot, sent
   local function first_slot(now)
      if starts[0] == 0 then starts[0] = now end
      local first = starts[0] + id * 1000 / rate
      return first + math.max(0, math.ceil((now - first) / step)) * step
   end
   local function delay()
      local now = now_ms()
      local latency = slot and sent and now - math.min(slot, sent)
      slot = slot and slot + step or first_slot(now)
      sent = nil
      if latency then took(latency, now - slot) end
      return math.max(0, slot - now)
   end
   local function sending()
      sent = sent or now_ms()
   end
   return delay, sending
end
M.pacer = pacer

-- What threads share -----------------------------------------------------------------------------

-- Each thread has a Lua state of its own in one process. What they share are arrays of numbers,
-- which the main state owns: when the first slot is; how many late requests each thread knows of, and
-- whether they ended the run; and for each thread the counts of its histogram. Of these a thread
-- writes its own cells only. Two that set the start at once differ by less than they would else.
local ENDED = MAX_THREADS
local function shared(kind, size)
   local ffi = require("ffi")
   local cells = ffi.new(kind .. "[?]", size)
   return cells, tonumber(ffi.cast("uintptr_t", cells))
end

local function shared_at(kind, address)
   local ffi = require("ffi")
   return ffi.cast(kind .. " *", ffi.cast("uintptr_t", address))
end

-- Late requests ----------------------------------------------------------------------------------

-- For the pacer: count the requests that are certain to be late, and call `stop` with every one of
-- them once the threads together have more than `limit_count`. Certain are those that were answered
-- late, and the slots that are past the limit by now: nothing can be answered earlier than now.
local function late_counter(cells, options, id, stop)
   local step = 1000 * options.threads / options.rate
   local limit_ms, limit_count = options["late-ms"], options["late-count"]
   local answered = 0
   return function(latency_ms, behind_ms)
      if latency_ms > limit_ms then answered = answered + 1 end
      local waiting = 0
      if behind_ms > limit_ms then waiting = 1 + math.floor((behind_ms - limit_ms) / step) end
      if answered + waiting == cells[id] then return end
      cells[id] = answered + waiting
      local all = 0
      for i = 0, options.threads - 1 do all = all + cells[i] end
      if all > limit_count then
         cells[ENDED] = 1
         stop()
      end
   end
end
M.late_counter = late_counter

-- thread:stop() would end the threads, but wrk sleeps for the whole duration in its main thread. On
-- SIGINT it wakes up, ends all threads within 0.1 s and calls done() with what there is. A signal
-- that comes before the sleep would not wake it, so there is one with every late request.
local function interrupter()
   local ffi = require("ffi")
   ffi.cdef("int getpid(void); int kill(int pid, int signal);")
   local SIGINT = 2
   return function() ffi.C.kill(ffi.C.getpid(), SIGINT) end
end

-- Histogram --------------------------------------------------------------------------------------

-- Buckets of an HdrHistogram at 3 significant digits from 1 us on, as wrk2 has them: exact below
-- 2048, then 1024 for each power of two. Buckets are numbered from 0.
local EXACT, HALF, EXPONENT = 2048, 1024, 11
local MAX_US = 2 ^ 36 - 1 -- 19 hours
local function bucket_of(value)
   value = math.min(value, MAX_US)
   if value < EXACT then return math.floor(value) end
   local _, exponent = math.frexp(value)
   local doublings = exponent - EXPONENT
   return HALF * doublings + math.floor(value / 2 ^ doublings)
end
M.bucket_of = bucket_of
local BUCKETS = bucket_of(MAX_US) + 1

-- The highest value in a bucket.
local function bucket_top(bucket)
   if bucket < EXACT then return bucket end
   local doublings = math.floor(bucket / HALF) - 1
   return (bucket - HALF * doublings + 1) * 2 ^ doublings - 1
end
M.bucket_top = bucket_top

-- All threads' latencies as counts by value.
local function merged(of_threads)
   local counts = {}
   for _, cells in ipairs(of_threads) do
      for bucket = 0, BUCKETS - 1 do
         if cells[bucket] > 0 then
            local top = bucket_top(bucket)
            counts[top] = (counts[top] or 0) + cells[bucket]
         end
      end
   end
   return counts
end

-- Ranks at which to cut first, so that the percentiles stay exact even when queries run out.
local function first_cuts(total)
   local cuts, last = { 1 }, 1
   for _, percentile in ipairs(PERCENTILES) do
      local rank = math.ceil(percentile[2] / 100 * total - 1e-6)
      if rank > last then
         cuts[#cuts + 1] = rank
         last = rank
      end
   end
   if total > last then cuts[#cuts + 1] = total end
   return cuts
end

-- wrk2 tells how many values there are and the value at a rank (latency[rank]), nothing else.
-- Between two ranks of equal value all values are equal; other spans are halved, widest first.
-- When the queries run out, the rest of a span counts as its upper value: never too good.
local function from_ranks(latency, max_queries)
   local counts, total = {}, #latency
   if total == 0 then return counts end
   local function add(value, n) counts[value] = (counts[value] or 0) + n end

   local spans, low = {}, nil
   for _, rank in ipairs(first_cuts(total)) do
      local value = latency[rank]
      if low then spans[#spans + 1] = { low, rank, latency[low], value } end
      low = rank
   end
   add(latency[1], 1)

   local queries, next_span = 0, 1
   while spans[next_span] do
      local from, to, from_value, to_value = unpack(spans[next_span])
      spans[next_span] = false
      next_span = next_span + 1
      if to - from == 1 or from_value == to_value or queries >= max_queries then
         add(to_value, to - from)
      else
         local middle = math.floor((from + to) / 2)
         local value = latency[middle]
         queries = queries + 1
         spans[#spans + 1] = { from, middle, from_value, value }
         spans[#spans + 1] = { middle, to, value, to_value }
      end
   end
   return counts
end
M.from_ranks = from_ranks

-- Result -----------------------------------------------------------------------------------------

local function whole(number) return string.format("%.0f", number) end

local function pairs_json(counts)
   local values, cells = {}, {}
   for value in pairs(counts) do values[#values + 1] = value end
   table.sort(values)
   for i, value in ipairs(values) do
      cells[i] = "[" .. whole(value) .. "," .. whole(counts[value]) .. "]"
   end
   return "[" .. table.concat(cells, ",") .. "]"
end

local function errors_json(errors)
   local cells = {}
   for i, kind in ipairs({ "connect", "read", "write", "timeout", "status" }) do
      cells[i] = '"' .. kind .. '":' .. whole(errors[kind])
   end
   return "{" .. table.concat(cells, ",") .. "}"
end

local function result_json(name, summary, counts, late, stopped)
   local fields = {
      '"schema":' .. SCHEMA,
      '"script":"' .. name .. '"',
      '"duration_us":' .. whole(summary.duration),
      '"requests":' .. whole(summary.requests),
      '"bytes":' .. whole(summary.bytes),
      '"late":' .. whole(late),
      '"stopped":' .. tostring(stopped),
      '"errors":' .. errors_json(summary.errors),
      '"histogram":' .. pairs_json(counts),
   }
   return "{" .. table.concat(fields, ",") .. "}"
end

-- Script -----------------------------------------------------------------------------------------

-- Define the globals that the tools call. `kinds` are the script's own arguments, all required;
-- `prepare(options, id)` runs once in each thread and returns its request function.
function M.script(name, kinds, prepare)
   local required = { "seed", "threads" }
   for kind in pairs(kinds) do required[#required + 1] = kind end
   kinds.seed, kinds.threads, kinds.rate, kinds.pace = "seed", "threads", "positive", "flag"
   kinds["late-ms"], kinds["late-count"] = "positive", "count"

   -- setup() and done() run in the main state, where the counters live; everything else in the
   -- thread's own.
   local late, late_address, starts, starts_address
   local of_threads = {}
   function setup(thread)
      if not late then
         late, late_address = shared("double", MAX_THREADS + 1)
         starts, starts_address = shared("double", 1)
      end
      local id = #of_threads
      local counts, counts_address = shared("uint32_t", BUCKETS)
      of_threads[id + 1] = counts
      thread:set("intop_thread_id", id)
      thread:set("intop_late", late_address)
      thread:set("intop_starts", starts_address)
      thread:set("intop_counts", counts_address)
   end

   function init(args)
      local options = parse(args, kinds)
      require_options(options, required)
      check_pace(options)
      local id = intop_thread_id
      if id >= options.threads then die("--threads is less than -t") end
      math.randomseed(options.seed * MAX_THREADS + id)
      request = prepare(options, id)
      if options.pace then
         local counts = shared_at("uint32_t", intop_counts)
         local count_late = function() end
         if options["late-ms"] then
            count_late = late_counter(shared_at("double", intop_late), options, id, interrupter())
         end
         local function took(latency_ms, behind_ms)
            local bucket = bucket_of(latency_ms * 1000)
            counts[bucket] = counts[bucket] + 1
            count_late(latency_ms, behind_ms)
         end
         local next_request, sending = request, nil
         local starts = shared_at("double", intop_starts)
         local clock = monotonic_ms_clock()
         delay, sending = pacer(options.rate, options.threads, id, starts, clock, took)
         request = function()
            sending()
            return next_request()
         end
      end
   end

   function done(summary, latency)
      local all_late = 0
      for id = 0, #of_threads - 1 do all_late = all_late + late[id] end
      local counts = is_wrk2() and from_ranks(latency, MAX_RANK_QUERIES) or merged(of_threads)
      print(result_json(name, summary, counts, all_late, late[ENDED] == 1))
   end
end

return M
