// Package client gets IDs from servers that run firn serve, over HTTP.
//
// A Client knows the servers, and a Sequencer of it hands out the IDs of one
// name. It fetches them in batches before they are needed, so that Next takes a
// few nanoseconds and not a round trip. Where a server fails, another one is
// asked.
//
// # What a retry means
//
// Every request makes new IDs. When an answer is lost, because a connection
// broke or a timeout passed, its IDs are lost, and the next request gives
// others: a retry costs IDs, and never repeats one. So this package retries
// what can be retried without asking, and the numbers have gaps. IDs that were
// fetched and not used when Close is called, or when they are too old, are lost
// as well.
//
// # How old an ID may be
//
// An ID is made when its batch is fetched, and handed out up to 10 minutes
// later (see firn.PrefetchOptions). Whoever reads the time of an ID as that of
// an event, or sorts the IDs of several programs, sets a shorter validity, or
// calls NextBatch, which always asks a server.
//
// A machine that is suspended does not count that time on all systems, so after
// it wakes up IDs can be older.
//
// # Copies of a process
//
// A copy of a running process, such as a snapshot of its machine that is
// restored while the original lives or after it went on, has the same IDs in
// store, and hands them out as well. Nothing notices that. Close the Client
// before a snapshot.
//
// # When not to use it
//
// A program that may have a node ID of its own needs no server: see
// firn.NewGenerator and package sequencer. For tests of programs that use this
// package there is clienttest.
package client
