-- Who waits, in the order in which they began to: requests for a connection, and whatever pauses for a
-- time that is the same for all.

local ffi, bit = require("ffi"), require("bit")
local band = bit.band

local M = {}

-- Numbers, first in, first out. `count` is how many there are.
local queue = {}
queue.__index = queue

function M.new()
   local size = 4096 -- a power of two
   return setmetatable({ size = size, first = 0, count = 0, numbers = ffi.new("double[?]", size) }, queue)
end

function queue:add(number)
   if self.count == self.size then
      local larger = ffi.new("double[?]", 2 * self.size)
      for k = 0, self.count - 1 do larger[k] = self:at(k) end
      self.numbers, self.first, self.size = larger, 0, 2 * self.size
   end
   self.numbers[band(self.first + self.count, self.size - 1)] = number
   self.count = self.count + 1
end

-- The number that so many others are before.
function queue:at(k) return self.numbers[band(self.first + k, self.size - 1)] end

function queue:take()
   local number = self.numbers[self.first]
   self.first = band(self.first + 1, self.size - 1)
   self.count = self.count - 1
   return number
end

-- Those that pause, each with a number and a serial: the first to begin is the first to end.
local pauses = {}
pauses.__index = pauses

function M.new_pauses()
   return setmetatable({ ids = M.new(), serials = M.new(), over = M.new() }, pauses)
end

function pauses:add(id, serial, over)
   self.ids:add(id)
   self.serials:add(serial)
   self.over:add(over)
end

function pauses:count() return self.ids.count end

-- When the first of them ends.
function pauses:next_over() return self.ids.count > 0 and self.over:at(0) or math.huge end

-- The number and the serial of one whose pause is over, nil where there is none.
function pauses:take(now)
   if self:next_over() > now then return nil end
   self.over:take()
   return self.ids:take(), self.serials:take()
end

return M
