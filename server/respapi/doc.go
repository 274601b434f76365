// Package respapi serves IDs over RESP, the protocol of Redis, in its versions
// 2 and 3, so that a Redis client is a client of Firn. The commands are NEXT,
// NEXTB, INCR, INCRBY 1 and INSPECT, transactions of them, and those that
// clients and tools send on their own; COMMAND DOCS lists them.
//
// IDs are bulk strings: clients in JavaScript turn integers into doubles, which
// makes two IDs one. Only INCR and INCRBY answer with an integer.
//
// Every connection has one goroutine. All commands that have arrived are
// answered with one write, so a pipeline costs little more than its longest
// command. What a connection takes in memory is bounded, whatever it sends: a
// client that pipelines megabytes of commands must read answers meanwhile, or
// it is cut off after Config.WriteTimeout.
//
// A Server makes no IDs itself, knows no store and no files of tokens. It is no
// Redis: it keeps no keys, and has no scripts or subscriptions.
package respapi
