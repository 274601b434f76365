// Package sim simulates many members of a sequencer, their clocks, their
// network and their store, under faults of all kinds, one event at a time.
//
// It runs the protocol's own grant.Machine and real generators, so what it
// shows holds for them and not for a model. A seed is a run: the same seed does
// the same again, to the byte. There is no real time and no goroutine in a run.
//
// It is for tests; docs/protocol.md says what they show.
package sim
