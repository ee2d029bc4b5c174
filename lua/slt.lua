-- Static load test: each request picks one path at random, uniformly, from the file --paths
-- (one path a line), or by the number that it is given; with --only PATH all ask for that one.
-- Further arguments: see intop.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local found, intop = pcall(dofile, here .. "intop.lua")
if not found then
   io.stderr:write("slt.lua: ", tostring(intop), "\n")
   os.exit(2)
end

local function checked(name, path)
   if not path:match("^/%S*$") then intop.die("--" .. name .. ": not a path: '" .. path .. "'") end
   return path
end

local function read_paths(file)
   local lines, problem = io.open(file)
   if not lines then intop.die("--paths: " .. problem) end
   local paths = {}
   for line in lines:lines() do
      local path = line:gsub("%s+$", "")
      if path ~= "" then paths[#paths + 1] = checked("paths", path) end
   end
   lines:close()
   if #paths == 0 then intop.die("--paths: no path in " .. file) end
   return paths
end

intop.script("slt", { paths = "text", only = "text" }, function(options)
   local requests, distinct, known = {}, {}, {}
   for i, path in ipairs(options.only and { checked("only", options.only) } or read_paths(options.paths)) do
      requests[i] = wrk.format(nil, path)
      if not known[path] then distinct[#distinct + 1] = requests[i] end
      known[path] = true
   end
   local random, count, others = math.random, #requests, #distinct
   -- Recorded arrivals give the number of a path among the different ones. With --only there is one.
   return function(number) return number and distinct[(number - 1) % others + 1] or requests[random(count)] end
end, { only = true })
