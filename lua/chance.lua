-- Chance of the engine's own, so that neither arrivals nor lifetimes depend on what is asked for:
-- xorshift32.

local bit = require("bit")
local bxor, lshift, rshift = bit.bxor, bit.lshift, bit.rshift

local M = {}

local word
local function random_word()
   word = bxor(word, lshift(word, 13))
   word = bxor(word, rshift(word, 17))
   word = bxor(word, lshift(word, 5))
   return word % 2 ^ 32
end

function M.seed(seed, stream)
   word = bit.tobit(seed * 2654435769 + 97 * stream + 1)
   if word == 0 then word = 1 end
   for _ = 1, 20 do random_word() end
end

-- Above 0, and at most 1.
function M.draw() return (random_word() + 1) / 2 ^ 32 end

-- A whole number from 1 on, `mean` on average: geometric.
function M.geometric(mean)
   if mean <= 1 or mean == math.huge then return mean end
   return math.ceil(math.log(M.draw()) / math.log(1 - 1 / mean))
end

return M
