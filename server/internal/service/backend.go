package service

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/veil"
)

// A Backend finds sequencers by name. This package knows nothing more about
// where IDs come from.
//
// It must be safe for concurrent use, also for the first use of a name: all
// callers of one name get IDs of one space, without duplicates.
type Backend interface {
	// Sequencer returns the sequencer of a name that CheckName accepts. It may
	// create one if the creator may do that, and may wait until ctx is done. The
	// name may be part of a longer string: clone it to keep it.
	//
	// An error in errorKinds gets a Kind of its own; the text of any other
	// error is logged and not shown to the client.
	Sequencer(ctx context.Context, name string, creator *Creator) (*Sequencer, error)

	// Opened is Sequencer for a name whose sequencer is available without
	// waiting; nil if it is not.
	Opened(name string) *Sequencer

	// Ready returns nil if the Backend can give IDs now. It may ask others,
	// until ctx is done. After an error /readyz answers 503.
	Ready(ctx context.Context) error

	// Admin returns the administration of all servers of the store; nil without
	// a store.
	Admin() *StoreAdmin
}

// A Sequencer is a named ID space. It must be made by a Backend or by
// NewSequencer.
type Sequencer struct {
	Layout firn.Layout
	Prefix string // of typed text; "" if it has none

	// Veil returns what writes its veiled IDs; nil if this server has no keys.
	Veil func() (form.Veil, error)

	// try takes IDs that are available and that no earlier call waits for.
	try func(n int) (Batch, error)

	// waitInLine waits for IDs after try has refused them.
	waitInLine func(ctx context.Context, n int, refusal error) (Batch, error)
}

// A source makes the IDs of a Sequencer: a generator, or a sequencer of a
// store. It answers calls in the order of their arrival, however many IDs each
// requests.
type source[I firn.AnyID] interface {
	firn.SourceOf[I]

	// TryNextBatch makes IDs that are available and that no earlier call waits
	// for.
	TryNextBatch(n int) (firn.BatchOf[I], error)
}

// NewSequencer makes the Sequencer of a source. The source must return exactly
// as many IDs as requested, 1 to MaxCount, or an error. It must wait first and
// take IDs afterwards, so that a call that returns an error has taken nothing,
// as far as possible (see firn.Generator's NextBatch). A wait must end with the
// context.
func NewSequencer[I firn.AnyID](l firn.Layout, from source[I]) *Sequencer {
	q := newQueue(l, from)
	return &Sequencer{Layout: l, try: q.try, waitInLine: q.waitInLine}
}

// complete makes a Form ready for the IDs of the sequencer. It is an error if
// the Form does not suit them.
func (s *Sequencer) complete(f *form.Form) error {
	if !f.IsVeiled() {
		return cmp.Or(f.CheckBits(s.Layout.Bits()), f.SetPrefix(s.Prefix))
	}
	if s.Veil == nil {
		return errNoVeilKeys
	}
	v, err := s.Veil()
	*f = form.VeiledBy(v)
	return err
}

var errNoVeilKeys = errors.New("this server has no keys for veiled IDs: start it with --veil-keys")

// veilOf returns Sequencer.Veil.
func veilOf(keys veil.Keys, name string, l firn.Layout) func() (form.Veil, error) {
	if keys.IsZero() {
		return nil
	}
	return sync.OnceValues(func() (form.Veil, error) { return form.NewVeil(keys, name, l) })
}

// Try takes n IDs that are available and that no earlier call waits for.
func (s *Sequencer) Try(n int) (Batch, error) { return s.try(n) }

// Take tries to take n IDs. If they are not free yet, it waits for its turn and
// for the IDs.
func (s *Sequencer) Take(ctx context.Context, n int) (b Batch, err error) {
	if b, err = s.Try(n); err == nil {
		return b, nil
	}
	return s.waitInLine(ctx, n, err)
}
