-- What slt.lua and dlt.lua share: their arguments, and under wrk2 the result as one line of JSON.
--
-- The same scripts run under intop's own engine (engine.lua), which takes from them what to ask for
-- and counts by itself, and under wrk2. They load this file from their own directory.
--
-- Arguments come after `--`, see command() in intop/hosts/load.py:
--   --seed N          0 .. 2^32-1; each thread draws from its own sequence
--   --threads N       wrk2's -t, or the engine's --streams; they keep their URLs apart
--   --method NAME     such as POST; the default is GET
--   --body-bytes N    the length of each request's body
--   --header "N: V"   one more header, may be given several times
--
-- wrk2 counts one timeout for each waiting connection every 2 s, and leaves out what is unanswered at
-- the end.

local M = {}

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local arguments = dofile(here .. "arguments.lua")
local json = dofile(here .. "json.lua")
M.die = arguments.die

local SCHEMA = 1
local MAX_THREADS = 1024
local PERCENTILES = { 50, 90, 99, 99.9 }

-- wrk2 scans its histogram for every rank that is asked for, 10 to 100 us each.
local MAX_RANK_QUERIES = 50000

-- Histogram --------------------------------------------------------------------------------------

-- Ranks at which to cut first, so that the percentiles stay exact even when queries run out.
local function first_cuts(total)
   local cuts, last = { 1 }, 1
   for _, percentile in ipairs(PERCENTILES) do
      local rank = math.ceil(percentile / 100 * total - 1e-6)
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

local function result_json(name, summary, counts)
   return json.object({
      schema = SCHEMA,
      script = json.text(name),
      duration_us = summary.duration,
      requests = summary.requests,
      bytes = summary.bytes,
      errors = json.object({
         connect = summary.errors.connect,
         read = summary.errors.read,
         write = summary.errors.write,
         timeout = summary.errors.timeout,
         status = summary.errors.status,
      }),
      histogram = json.pairs(counts),
   })
end

-- Script -----------------------------------------------------------------------------------------

local COMMON = { seed = "seed", threads = "count", method = "text", ["body-bytes"] = "count", header = "texts" }

-- What every request of the script has: method, headers and body.
local function shape(options)
   wrk.method = options.method or wrk.method
   arguments.add_headers(options, wrk.headers)
   if options["body-bytes"] then wrk.body = string.rep("x", options["body-bytes"]) end
end

-- Define the globals that the tools call. `kinds` are the script's own arguments, all required but
-- the `optional` ones; `prepare(options, id)` runs once in each thread and returns its request function.
function M.script(name, kinds, prepare, optional)
   local required = { "seed", "threads" }
   for kind in pairs(kinds) do
      if not (optional and optional[kind]) then required[#required + 1] = kind end
   end
   for kind, reader in pairs(COMMON) do kinds[kind] = reader end

   -- setup() and done() run in the main state, everything else in the thread's own.
   local threads = 0
   function setup(thread)
      thread:set("intop_thread_id", threads)
      threads = threads + 1
   end

   function init(args)
      if not wrk.engine and not wrk.time_us then M.die("wrk can't hold a rate; use wrk2 or engine.lua") end
      local options = arguments.parse(args, kinds)
      arguments.require(options, required)
      local id = intop_thread_id
      if options.threads > MAX_THREADS then M.die("--threads must be at most " .. MAX_THREADS) end
      if id >= options.threads then M.die("--threads is less than -t") end
      shape(options)
      math.randomseed(options.seed * MAX_THREADS + id)
      request = prepare(options, id)
   end

   function done(summary, latency) print(result_json(name, summary, from_ranks(latency, MAX_RANK_QUERIES))) end
end

return M
