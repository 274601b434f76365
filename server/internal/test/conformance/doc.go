// Package conformance tests the clients of all languages against real servers
// under faults, against answers that no server gives, and against the rules of
// docs/languages.md. It is for no program.
//
// Each package in sdk/ supplies a driver, a program that reads one command a
// line and answers each with one line; that of the Go client is the test itself:
//
//	driver --servers URL,URL --sequencer NAME [--token-file FILE] [--ca FILE] [--wide]
//		[--patient] [--timeout S] [--patience S]
//
//	next N           ok ID…       N calls of next, one after the other
//	take N           ok ID…       a batch from a server
//	burst N T FILE   ok MS        T threads or tasks draw N IDs each, written to FILE,
//	                              big-endian; the longest call in milliseconds
//	fork N FILE      ok           draws, forks while other threads draw, and parent and
//	                              child draw N each, all written to FILE; or skip
//	stats            ok {…}       the state of the servers
//	close            ok           and the driver ends
//
// A failure is answered with error CLASS MESSAGE. The token file is read for
// each request, and the file of authorities for each connection. With --wide,
// IDs have 128 bits and are written as UUIDs. With --patient, the limits of the
// client are minutes: a slow machine is not a fault. Otherwise --timeout and
// --patience set these options, in seconds.
package conformance
