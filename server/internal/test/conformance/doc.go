// Package conformance tests the clients of languages other than Go against real
// servers under faults, and against answers that no server gives. Those of the
// Go client are in its package. It is for no program.
//
// Each package in sdk/ supplies a driver, a program that reads one command a
// line and answers each with one line:
//
//	driver --servers URL,URL --sequencer NAME [--token-file FILE] [--ca FILE] [--wide] [--patient]
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
// client are minutes: a slow machine is not a fault.
package conformance
