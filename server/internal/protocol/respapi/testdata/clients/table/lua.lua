-- redis-lua: lua.lua PORT.
local redis = require("redis")
local r = redis.connect("127.0.0.1", tonumber(arg[1]))
os.execute("sleep " .. os.getenv("SILENT"))
r.next = redis.command("NEXT")
print("next", r:next("orders"))
print("three", unpack(r:next("orders", "3")))
for _ = 1, 100 do
  print("incr", string.format("%.0f", r:incr("orders")))
end
