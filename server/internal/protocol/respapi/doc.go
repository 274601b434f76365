// Package respapi serves IDs over RESP 2 and 3, the protocol of Redis, so that
// Redis clients are clients of Firn. The commands are NEXT, NEXTB, NEXTR, INCR,
// INCRBY 1 and INSPECT, transactions of them, and those that clients and tools
// send on their own; COMMAND LIST lists them.
//
// IDs are bulk strings: clients in JavaScript and Lua turn integers into
// doubles, which makes different IDs equal. Only INCR and INCRBY return
// integers.
//
// Every connection has one goroutine. All commands that have arrived are
// answered with one write, so a pipeline costs little more than its longest
// command. A connection uses a bounded amount of memory, whatever it sends: a
// client that pipelines megabytes of commands must read answers meanwhile, or
// it is disconnected after Config.Front.Limits.Write.
//
// A Server makes no IDs itself and knows neither stores nor token files. It is
// not a Redis server: it has no keys, scripts or subscriptions.
package respapi
