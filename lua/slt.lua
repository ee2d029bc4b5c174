-- Static load test: each request picks one path at random, uniformly, from the file --paths
-- (one path a line). Further arguments: see intop.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local found, intop = pcall(dofile, here .. "intop.lua")
if not found then
   io.stderr:write("slt.lua: ", tostring(intop), "\n")
   os.exit(2)
end

local function read_paths(file)
   local lines, problem = io.open(file)
   if not lines then intop.die("--paths: " .. problem) end
   local paths = {}
   for line in lines:lines() do
      local path = line:gsub("%s+$", "")
      if path ~= "" then
         if not path:match("^/%S*$") then intop.die("--paths: not a path: '" .. path .. "'") end
         paths[#paths + 1] = path
      end
   end
   lines:close()
   if #paths == 0 then intop.die("--paths: no path in " .. file) end
   return paths
end

intop.script("slt", { paths = "text" }, function(options)
   local requests = {}
   for i, path in ipairs(read_paths(options.paths)) do
      requests[i] = wrk.format(nil, path)
   end
   local random, count = math.random, #requests
   return function() return requests[random(count)] end
end)
