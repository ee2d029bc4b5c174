-- Dynamic load test: each request asks for --path with a fresh random number, so that every URL is
-- unique within a run. Further arguments: see intop.lua.

local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local found, intop = pcall(dofile, here .. "intop.lua")
if not found then
   io.stderr:write("dlt.lua: ", tostring(intop), "\n")
   os.exit(2)
end

-- Split the request around the number, so that request() only joins three strings.
local function around_number(path)
   if not path:match("^/%S*$") then intop.die("--path: not a path: '" .. path .. "'") end
   local target = path .. (path:find("?", 1, true) and "&r=" or "?r=")
   local text = wrk.format(nil, target)
   local _, stop = text:find(target, 1, true)
   return text:sub(1, stop), text:sub(stop + 1)
end

intop.script("dlt", { path = "text" }, function(options, id)
   local head, tail = around_number(options.path)
   local random, serial = math.random, id
   return function()
      -- Nine random digits, then a serial number that no other thread uses: random and unique.
      serial = serial + options.threads
      return head .. random(100000000, 999999999) .. string.format("%d", serial) .. tail
   end
end)
