-- Reading a command line of `--name value` and `--flag`: what the engine and the request scripts
-- share. An argument that can't be taken ends the program with one line.

local M = {}

local MAX_SEED = 2 ^ 32 - 1

-- Print one line and end before the first request. error() would not do: wrk2 prints errors of the
-- main chunk and then goes on with its default request at full speed.
function M.die(message)
   io.stderr:write("intop: ", message, "\n")
   os.exit(2)
end

local function refuse(name, what, text) M.die("--" .. name .. " must be " .. what .. ", not '" .. text .. "'") end

-- How a value is read, by its kind. Each of them returns the value or ends the program.
local readers = {}

function readers.text(name, text)
   if text == "" then M.die("--" .. name .. " is empty") end
   return text
end

function readers.positive(name, text)
   local number = tonumber(text)
   if not number or not (number > 0 and number < math.huge) then refuse(name, "a positive number", text) end
   return number
end

function readers.number(name, text)
   local number = tonumber(text)
   if not number or not (number >= 0 and number < math.huge) then refuse(name, "a number from 0 on", text) end
   return number
end

function readers.count(name, text)
   local number = readers.number(name, text)
   if number % 1 ~= 0 then refuse(name, "a whole number from 0 on", text) end
   return number
end

function readers.seed(name, text)
   local number = tonumber(text)
   if not number or number % 1 ~= 0 or number < 0 or number > MAX_SEED then
      refuse(name, "a whole number from 0 to 2^32-1", text)
   end
   return number
end

-- `kinds` has a reader's name for each argument, "flag" for one without a value, or "texts" for one
-- that may be given several times. Returns the values by name, and what stands after a lone `--`.
function M.parse(args, kinds)
   local options, i = {}, 1
   while args[i] and args[i] ~= "--" do
      local name = args[i]:match("^%-%-(.+)$")
      local kind = name and kinds[name]
      if not kind then M.die("unknown argument '" .. args[i] .. "'") end
      if options[name] ~= nil and kind ~= "texts" then M.die("argument --" .. name .. " given twice") end
      if kind == "flag" then
         options[name] = true
      else
         i = i + 1
         if not args[i] then M.die("argument --" .. name .. " needs a value") end
         if kind == "texts" then
            options[name] = options[name] or {}
            table.insert(options[name], readers.text(name, args[i]))
         else
            options[name] = readers[kind](name, args[i])
         end
      end
      i = i + 1
   end
   local rest = {}
   for k = i + 1, #args do rest[#rest + 1] = args[k] end
   return options, rest
end

function M.require(options, names)
   for _, name in ipairs(names) do
      if options[name] == nil then M.die("missing argument --" .. name) end
   end
end

-- Put those of --header into a table by name.
function M.add_headers(options, headers)
   for _, line in ipairs(options.header or {}) do
      local name, value = line:match("^([^%s:]+):%s*(.-)%s*$")
      if not name then M.die("--header must be 'Name: value', not '" .. line .. "'") end
      headers[name] = value
   end
end

return M
