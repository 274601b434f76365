// Not run by Firn's tests. dotnet add package StackExchange.Redis; dotnet run [PORT]
using StackExchange.Redis;

var port = args.Length > 0 ? args[0] : "3476";
// One multiplexer for the process; threads share it. Firn has no channels,
// no cluster and no keys, so the client must not ask for them.
var options = $"127.0.0.1:{port},connectTimeout=1000,syncTimeout=2000,asyncTimeout=2000,$SUBSCRIBE=,$CLUSTER=,tiebreaker=";
await using var connection = await ConnectionMultiplexer.ConnectAsync(options);
var firn = connection.GetDatabase();

Console.WriteLine(await NextAsync());
foreach (var id in await TakeAsync(100)) Console.WriteLine(id);

async Task<long> NextAsync() => (long)await firn.ExecuteAsync("NEXT", "orders");
async Task<long[]> TakeAsync(int count) => (long[])(await firn.ExecuteAsync("NEXT", "orders", count))!;
