package service

import (
	"context"
	"fmt"

	"github.com/firnid/firn"
)

// A Backend finds sequencers by name. This package knows nothing more about
// where IDs come from.
//
// It must be safe for concurrent use, also for the first use of a name: all
// callers of one name get IDs of one space, without duplicates.
type Backend interface {
	// Sequencer returns the sequencer of a name that CheckName accepts. It may
	// create one, and may wait until ctx is done. The name may be part of a longer
	// string: clone it to keep it.
	//
	// An error in causes (fault.go) gets a Kind of its own; the text of any other
	// error is logged and not shown to the client.
	Sequencer(ctx context.Context, name string) (Sequencer, error)

	// Opened is Sequencer for a name whose sequencer is available without waiting;
	// ok is false if it is not.
	Opened(name string) (s Sequencer, ok bool)

	// Ready returns nil if the Backend can give IDs now. It may ask others, until
	// ctx is done. After an error /readyz answers 503.
	Ready(ctx context.Context) error

	// Admin returns the administration of all servers of the store; nil without a
	// store.
	Admin() Administrator
}

// A Sequencer is a named ID space, as plain data. Source or Source128 is set,
// depending on the size of the layout's IDs.
//
// The source must return exactly as many IDs as requested, 1 to MaxCount, or an
// error. It must wait first and take IDs afterwards, so that a call that
// returns an error has taken nothing, as far as possible (see firn.Generator's
// NextBatch). A wait must end with the context.
type Sequencer struct {
	Layout    firn.Layout
	Source    firn.Source
	Source128 firn.Source128

	// Try and Try128 take IDs of the same source without waiting; nil if it
	// cannot.
	Try    Trier[firn.ID]
	Try128 Trier[firn.ID128]
}

// CheckLen checks that a source returned as many IDs as requested, or an error.
func CheckLen(got, want int, err error) error {
	if err == nil && got != want {
		return fmt.Errorf("the source gave %d IDs, not %d", got, want)
	}
	return err
}

// A Trier takes one or more available IDs and does not wait. A call that
// returns an error has taken nothing.
type Trier[I firn.AnyID[I]] interface {
	TryNext() (I, error)
	TryNextBatch(n int) (firn.BatchOf[I], error)
}
