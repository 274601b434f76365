#!/bin/sh
# Runs the Lua rows of docs/digits.md in Lua 5.1 (as in Redis, nginx and LuaJIT) and 5.4, with
# lua-cjson if it is installed.
set -eu
command -v lua5.1 lua5.4 >/dev/null || exit 3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/main.lua" <<'END'
local A, N = "1179183313482456071", "1179183313482456070"
local function row(what, got, exact, version)
  print(table.concat({what, version or _VERSION:sub(5), tostring(got), exact or ""}, "\t"))
end
local ok, cjson = pcall(require, "cjson")
if _VERSION == "Lua 5.1" then
  row("Lua 5.1 tonumber", tonumber(A), A)
  row("Lua 5.1 tonumber(n) == tonumber(n-1)", tonumber(A) == tonumber(N), A ~= N and A)
  row("Lua 5.1 string.format %d", string.format("%d", A), string.format("%s", A))
  row("Lua 5.1 table with key n, read with n-1", ({[tonumber(A)] = "found"})[tonumber(N)], (next({[A] = 1})))
  if ok then row("lua-cjson decode in Lua 5.1", cjson.decode("[" .. A .. "]")[1], cjson.decode('["' .. A .. '"]')[1], cjson._VERSION) end
else
  row("Lua 5.4 tonumber", tonumber(A))
  row("Lua 5.4 n / 1", tonumber(A) / 1, math.tointeger(tonumber(A)))
  row("Lua 5.4 string.format %.0f", string.format("%.0f", tonumber(A)), string.format("%d", tonumber(A)))
  row("Lua 5.4 tonumber of 2^63", tonumber("9223372036854775808"))
  if ok then
    row("lua-cjson decode in Lua 5.4", cjson.decode("[" .. A .. "]")[1], cjson.decode('["' .. A .. '"]')[1], cjson._VERSION)
    row("lua-cjson encode of an integer in Lua 5.4", cjson.encode({tonumber(A)}), cjson.encode({A}), cjson._VERSION)
  end
end
END
lua5.1 "$dir/main.lua"
lua5.4 "$dir/main.lua"
