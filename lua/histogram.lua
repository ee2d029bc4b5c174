-- Latency histograms at the resolution of an HdrHistogram with 3 significant digits from 1 us on:
-- exact below 2048, then 1024 buckets for each power of two. Buckets are numbered from 0.

local ffi, bit = require("ffi"), require("bit")
local floor, rshift = math.floor, bit.rshift

local M = {}

local EXACT, HALF, EXPONENT = 2048, 1024, 10
local MAX_US = 2 ^ 31 - 1 -- 36 minutes
local as_double = ffi.new("union { double number; int32_t words[2]; }")

-- The power of two is read off the double's exponent: math.frexp isn't compiled.
local function bucket_of(us)
   if us < EXACT then return us > 0 and floor(us) or 0 end
   if us > MAX_US then us = MAX_US end
   as_double.number = us
   local doublings = rshift(as_double.words[1], 20) - 1023 - EXPONENT
   return HALF * doublings + rshift(floor(us), doublings)
end
M.bucket_of = bucket_of

-- The highest value in a bucket.
function M.bucket_top(bucket)
   if bucket < EXACT then return bucket end
   local doublings = floor(bucket / HALF) - 1
   return (bucket - HALF * doublings + 1) * 2 ^ doublings - 1
end

local BUCKETS = bucket_of(MAX_US) + 1

function M.new() return ffi.new("uint32_t[?]", BUCKETS) end

function M.count(histogram, us)
   local bucket = bucket_of(us)
   histogram[bucket] = histogram[bucket] + 1
end

-- Its counts by the highest value of the bucket.
function M.counts(histogram)
   local counts = {}
   for bucket = 0, BUCKETS - 1 do
      if histogram[bucket] > 0 then counts[M.bucket_top(bucket)] = histogram[bucket] end
   end
   return counts
end

return M
