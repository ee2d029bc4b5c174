-- One line of JSON: what a load prints at its end.

local M = {}

local function whole(number) return string.format("%.0f", number) end

local function sorted(fields)
   local names = {}
   for name in pairs(fields) do names[#names + 1] = name end
   table.sort(names)
   return names
end

-- Counts by value, as a list of pairs in ascending order of the values.
function M.pairs(counts)
   local cells = {}
   for i, value in ipairs(sorted(counts)) do cells[i] = "[" .. whole(value) .. "," .. whole(counts[value]) .. "]" end
   return "[" .. table.concat(cells, ",") .. "]"
end

-- Control characters don't occur in what we print.
function M.text(text) return '"' .. text:gsub('[\\"]', "\\%0") .. '"' end

-- Of whole numbers, flags, and texts that are JSON by now.
function M.object(fields)
   local cells = {}
   for i, name in ipairs(sorted(fields)) do
      local value = fields[name]
      if type(value) == "number" then value = whole(value) end
      cells[i] = M.text(name) .. ":" .. tostring(value)
   end
   return "{" .. table.concat(cells, ",") .. "}"
end

return M
