package service

import (
	"context"
	"fmt"

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
	// An error says why there is none. Those in causes, in fault.go, get a Kind of
	// their own; the text of any other is logged and not shown to the client.
	Sequencer(ctx context.Context, name string) (Sequencer, error)

	// Opened is Sequencer for a name whose sequencer is there without a wait; ok
	// is false if it is not.
	Opened(name string) (s Sequencer, ok bool)

	// Ready returns nil if it can give IDs at this moment. It may ask others,
	// until ctx is done. With an error /readyz says 503.
	Ready(ctx context.Context) error

	// Admin is what can be done for all servers of its store; nil without a store.
	Admin() Administrator
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

	// Try and Try128 make IDs of the same source without waiting; nil if it
	// cannot.
	Try    Trier[firn.ID]
	Try128 Trier[firn.ID128]
}

// CheckLen holds a source to what a Sequencer promises: as many IDs as were
// asked for, or an error.
func CheckLen(got, want int, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("the source gave %d IDs, not %d", got, want)
	}
	return err
}

// A Trier makes IDs that are free, one or several, and does not wait. A call
// that ends in an error has taken nothing.
type Trier[I firn.AnyID[I]] interface {
	TryNext() (I, error)
	TryNextBatch(n int) (firn.BatchOf[I], error)
}
