// Package stale has the error by which a store tells package grant that the
// server that answered may have been replaced.
package stale

import "time"

// An Error is the error of a Store that has used another server since: the one
// that answered was replaced by that, and shows what was true before, or it was
// restored from a backup in that one's place. Only an operator knows which. So
// Get returns the value with the error, and a fence made later than the other
// server's last answer is the evidence that it was restored. It is returned by
// pointer.
type Error struct {
	Err   error     // what the Store has found
	Other time.Time // when the other server answered last, by this machine's clock

	// Trust makes the Store use the server that answered, and not the other
	// one. The identity that Lineage returns is then a new one, so that each
	// member looks for a fence of its own sequencer.
	Trust func()
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
