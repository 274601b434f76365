// Package fleet simulates a large fleet of processes that share one sequencer
// and one store: a start of all at once, a rollout, outages of the store and
// what comes after them. It counts what the store is asked in every second, and
// how long who stands without an ID.
//
// It runs the protocol's own grant.Machine and real generators in virtual time,
// with one store that takes its time for every request, first come first
// served. A seed is a run: the same plan does the same again. There is no
// goroutine in a run.
//
// Package grant/sim is about faults of all kinds among a few processes; here
// are few kinds of faults, and many processes. What sim holds is held here too:
// see report.Violation. It is for tests and for docs/scale.md, not for
// production.
package fleet
