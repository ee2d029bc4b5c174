-- What slt.lua and dlt.lua share: arguments, pacing, and the result as one line of JSON.
--
-- The same files run under wrk2 (constant rate by its own -R) and under wrk (a closed loop, which
-- delay() below turns into a constant rate). The scripts load this file from their own directory.
--
-- Arguments come after `--`, see command() in intop/hosts/load.py:
--   --seed N       0 .. 2^32-1; each thread draws from its own sequence
--   --threads N    as -t; threads stagger their slots and keep their URLs apart
--   --pace         under wrk only: define delay() and hold --rate
--   --rate R       requests per second over all threads; only with --pace
--   --late-ms L    with --late-count K, only with --pace: end the run as soon as more than K
--                  requests are certain to be sent more than L ms after they were due
--
-- Why not under wrk2: there a request is due by the connection it goes out on, which request() is
-- not told, so which of them are late can't be known; and the first 10 s don't count.
--
-- Timeouts differ: wrk drops an answer that took --timeout or longer from its histogram and counts
-- it as a timeout, so a short one hides the tail; wrk2 keeps it in the histogram and adds one
-- timeout per waiting connection every 2 s. Neither counts requests that are unanswered at the end.
-- Hence a --timeout well above any latency that is of interest (10 s in load.py).

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

-- wrk without delay() would send as fast as it can; wrk2 has no delay() to call.
local function check_pace(options)
   local is_wrk2 = wrk.time_us ~= nil
   if options.pace and is_wrk2 then die("--pace is for wrk; wrk2 holds its rate by -R") end
   if not options.pace and not is_wrk2 then die("wrk needs --pace and --rate to hold a rate") end
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

-- A connection that is free takes the thread's next slot and waits for it; a slot in the past is
-- taken at once. Slots never move, so a stall is followed by its whole backlog. `too_late`, where
-- there is a limit, is told of each slot that is further in the past than that.
local function pacer(rate, threads, id, now_ms, limit_ms, too_late)
   local step = 1000 * threads / rate
   local slot
   limit_ms = limit_ms or math.huge
   return function()
      local now = now_ms()
      slot = slot and slot + step or now + id * 1000 / rate
      if now - slot > limit_ms then too_late(now - slot) end
      return math.max(0, slot - now)
   end
end
M.pacer = pacer

-- Late requests ----------------------------------------------------------------------------------

-- Each thread has a Lua state of its own in one process. What they share is this array of numbers,
-- which the main state owns: how many late requests each thread knows of, and whether they ended
-- the run. A thread writes its own cell only.
local ENDED = MAX_THREADS
local function shared_cells()
   local ffi = require("ffi")
   local cells = ffi.new("double[?]", MAX_THREADS + 1)
   return cells, tonumber(ffi.cast("uintptr_t", cells))
end

local function cells_at(address)
   local ffi = require("ffi")
   return ffi.cast("double *", ffi.cast("uintptr_t", address))
end

-- For the pacer: count the slots that are certain to be late, and call `stop` with every one of
-- them once the threads together have more than `limit_count`. With a slot that is `late_ms` in
-- the past, those that follow it and are past the limit by now are certain, too: nothing can take
-- them earlier than now.
local function late_counter(cells, options, id, stop)
   local step = 1000 * options.threads / options.rate
   local limit_ms, limit_count = options["late-ms"], options["late-count"]
   local taken = 0
   return function(late_ms)
      cells[id] = taken + 1 + math.floor((late_ms - limit_ms) / step)
      taken = taken + 1
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

-- The highest value in the HdrHistogram bucket of a value, at 3 significant digits from 1 us on:
-- exact below 2048, then 1024 buckets for each power of two. wrk2 answers with the same values.
local function bucket_top(value)
   if value < 2048 then return value end
   local _, exponent = math.frexp(value)
   local width = 2 ^ (exponent - 11)
   return value - value % width + width - 1
end
M.bucket_top = bucket_top

-- wrk keeps one counter for each microsecond, but its Lua interface scans them all for each value:
-- quadratic, minutes for a bad run. It also skips what the correction for coordinated omission
-- added below the smallest measured value. So read the counters where they are:
-- struct { uint64_t count, limit, min, max, data[]; }, unchanged from wrk 4.0 to 4.2.
local function read_wrk_counters(latency)
   local cells = require("ffi").cast("uint64_t **", latency)[0]
   local count, limit = tonumber(cells[0]), tonumber(cells[1])
   local min, max = tonumber(cells[2]), tonumber(cells[3])
   if min ~= latency.min or max ~= latency.max then return nil end
   if count == 0 then return {} end
   if max >= limit then return nil end
   local counts, total = {}, 0
   for value = 0, max do
      local n = tonumber(cells[4 + value])
      if n > 0 then
         local top = bucket_top(value)
         counts[top] = (counts[top] or 0) + n
         total = total + n
      end
   end
   return total == count and counts or nil
end

-- The slow way, for a wrk whose counters lie elsewhere.
local function walk_wrk(latency)
   local counts = {}
   for i = 1, #latency do
      local value, n = latency(i)
      local top = bucket_top(value)
      counts[top] = (counts[top] or 0) + n
   end
   return counts
end
M.walk_wrk = walk_wrk

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

-- Only wrk's latency object can be called; wrk2's is indexed by rank.
local function histogram(latency)
   if getmetatable(latency).__call then
      return read_wrk_counters(latency) or walk_wrk(latency)
   end
   return from_ranks(latency, MAX_RANK_QUERIES)
end

-- Result -----------------------------------------------------------------------------------------

local function whole(number) return string.format("%.0f", number) end

-- Without any value the tools answer 2^64, NaN or 0, depending on the question.
local function statistic(number, is_empty)
   if is_empty or number ~= number or math.abs(number) == math.huge then return "null" end
   return string.format("%.3f", number):gsub("%.?0+$", "")
end

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

-- What the tool itself says, whereas percentiles of the histogram are for the reader to compute.
local function latency_json(latency, is_empty)
   local cells = {}
   for i, name in ipairs({ "min", "max", "mean", "stdev" }) do
      cells[i] = '"' .. name .. '":' .. statistic(latency[name], is_empty)
   end
   for _, percentile in ipairs(PERCENTILES) do
      local value = statistic(latency:percentile(percentile[2]), is_empty)
      cells[#cells + 1] = '"' .. percentile[1] .. '":' .. value
   end
   return "{" .. table.concat(cells, ",") .. "}"
end

local function result_json(name, summary, latency, late, stopped)
   local counts = histogram(latency)
   local fields = {
      '"schema":' .. SCHEMA,
      '"script":"' .. name .. '"',
      '"duration_us":' .. whole(summary.duration),
      '"requests":' .. whole(summary.requests),
      '"bytes":' .. whole(summary.bytes),
      '"late":' .. whole(late),
      '"stopped":' .. tostring(stopped),
      '"errors":' .. errors_json(summary.errors),
      '"latency_us":' .. latency_json(latency, next(counts) == nil),
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
   local threads_seen = 0
   local cells, address
   function setup(thread)
      if not cells then cells, address = shared_cells() end
      thread:set("intop_thread_id", threads_seen)
      thread:set("intop_cells", address)
      threads_seen = threads_seen + 1
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
         local limit_ms, too_late = options["late-ms"], nil
         if limit_ms then
            too_late = late_counter(cells_at(intop_cells), options, id, interrupter())
         end
         local clock = monotonic_ms_clock()
         delay = pacer(options.rate, options.threads, id, clock, limit_ms, too_late)
      end
   end

   function done(summary, latency)
      local late = 0
      for id = 0, threads_seen - 1 do late = late + cells[id] end
      print(result_json(name, summary, latency, late, cells[ENDED] == 1))
   end
end

return M
