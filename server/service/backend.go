package service

import (
	"context"

	"github.com/firnid/firn"
)

// A Backend finds sequencers by their names. It is all that this package knows
// of where IDs come from.
//
// It must be safe for use by many goroutines at once, also for the first use of
// a name: all callers of one name get IDs of one space, in which none is given
// out twice.
type Backend interface {
	// Sequencer returns the sequencer of a name that CheckName accepts. It may
	// make one, and may wait, until ctx is done. The name may be a part of a
	// longer string: who keeps it clones it.
	//
	// An error says why there is none. Errors of package firn and
	// ErrTooManyNames get a status of their own, see problem.go; the text of
	// any other is logged and not shown to the client.
	Sequencer(ctx context.Context, name string) (Sequencer, error)
}

// A Readier is a Backend that knows whether it can give IDs at this moment.
// Ready may ask others, until ctx is done; with an error /readyz says 503, and the
// log is told when that changes.
type Readier interface {
	Ready(ctx context.Context) error
}

// A Sequencer is a named space of IDs, as a Backend knows it: plain data. One
// of Source and Source128 is set, by the size of the layout's IDs.
//
// The source must give exactly as many IDs as it is asked for, 1 to MaxCount,
// or an error. It must wait first and take then: a call that ends in an error
// has taken nothing, as far as that can be (see firn.Generator's NextBatch).
// Where it waits, it must heed the context.
type Sequencer struct {
	Layout    firn.Layout
	Source    firn.Source
	Source128 firn.Source128
}
