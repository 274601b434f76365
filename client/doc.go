// Package client gets IDs from servers that run firn serve.
//
// A Client holds the list of servers, and each Sequencer of a Client hands out
// the IDs of one name. It fetches them in batches before they are needed, so
// that Next takes a few nanoseconds instead of a round trip. If a server fails,
// another one is used.
//
// # Transports
//
// A firn:// address speaks RESP, which costs a fraction of HTTP. Use http:// if
// a proxy stands between, or if an http.Client of yours sends the requests.
// IDs, errors, tokens and certificates are the same over both.
//
// # Hung servers
//
// If a server has not answered a request after 200 ms, or after twice the usual
// time, the Client sends the request to another server too, and returns the
// first answer. From then on, calls use other servers. Beside them, the Client
// requests single IDs from the hung server, which it discards, until an answer
// arrives in time. So a hung server delays the calls in progress, but no later
// ones, and neither does one that is always slower than the others. If all are
// slow, their usual time grows, and requests are no longer sent twice.
//
// A server that refuses a request for a reason of its own, such as an unknown
// token, or that is not a server of Firn, is left out as well. If no server
// answers, the error has the last failure of each.
//
// # Errors
//
// Errors match those of the packages firn and grant with the same meaning, so a
// program can exchange a sequencer of package sequencer for one of this
// package: firn.ErrUnavailable if no server answers, or grant.ErrMoved and so on
// if a server has that problem. Problems that pass and have no such error, such
// as a rate limit, match firn.ErrExhausted. An *Error has its Kind.
//
// # What a retry means
//
// Every request makes new IDs. If an answer is lost, because a connection broke
// or a timeout passed, its IDs are lost, and the next request returns different
// ones: a retry wastes IDs but never repeats one. So this package retries
// freely, and the numbers have gaps. IDs that were fetched but not used before
// Close, or before they grew too old, are lost as well.
//
// # How old an ID may be
//
// An ID is made when its batch is fetched, and handed out up to 10 minutes
// later (see firn.PrefetchOptions). If you use the time of an ID as that of an
// event, or sort the IDs of several programs, set a shorter validity, or call
// NextBatch, which always asks a server.
//
// On some systems, the time during which a machine is suspended does not count,
// so IDs can be older after it wakes up.
//
// # Copies of a process
//
// A copy of a running process hands out the same fetched IDs as the original.
// An example is a snapshot of a virtual machine that is restored while the
// original runs, or after it has continued to run. Nothing detects that. Close
// the Client before taking a snapshot.
//
// # When not to use it
//
// A program that can have its own node ID needs no server: see
// firn.NewGenerator and package sequencer. To test programs that use this
// package, see clienttest.
package client
