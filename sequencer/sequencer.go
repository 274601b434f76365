package sequencer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Errors of sequencers, in addition to those of packages grant and firn.
var (
	// ErrNotJoined is returned after Leave until Join, and if Options.Idle is
	// set, until the first Join.
	ErrNotJoined = errors.New("sequencer: this process has not joined the sequencer")

	// ErrUnavailable means that the store did not answer in time, or refused the
	// request, for example because its disk is full. Trying again later may
	// help.
	ErrUnavailable = errors.New("sequencer: the store is unavailable")
)

// Options configure how a sequencer is opened. The settings in the first part
// are the same for every process that opens it, and set when it is created.
// If they are zero, an existing sequencer's settings apply, or defaults if it
// is created now. The second part is the process's own.
type Options struct {
	// First part: the settings of the sequencer.

	// Layout is the layout of the IDs. If it is zero, the sequencer must exist,
	// and its layout is used.
	Layout firn.Layout

	// MaxAhead is how far IDs may run ahead of the clock, in whole
	// milliseconds; nil means the layout's default.
	MaxAhead *time.Duration

	// Window is how long a node ID is held without contact to the store, in
	// whole milliseconds. The default is 30 s in a directory, 10 min in
	// Kubernetes and 60 s elsewhere, or longer if the layout requires it. An
	// existing sequencer's window applies instead, and a difference is logged:
	// grant.SetWindow changes it while members run.
	Window time.Duration

	// Prefix is that of grant.Config; empty means none, or that of an existing
	// sequencer.
	Prefix string

	// Second part: the settings of this process.

	// MustExist prevents Open from creating the sequencer.
	MustExist bool

	// WaitForNode makes calls wait, under their contexts, if no node ID is
	// free. Without it, they fail at once with grant.ErrNodesExhausted.
	WaitForNode bool

	// Idle opens the sequencer without a node ID, until Join.
	Idle bool

	// Member has the other settings, such as Nodes and Logger.
	grant.Member
}

// Stats are statistics of a sequencer in a process.
type Stats struct {
	firn.Stats
	Keeper grant.KeeperStats
}

// A Sequencer makes 64-bit IDs of a named ID space. See SequencerOf for its
// methods.
type Sequencer = SequencerOf[firn.ID]

var _ firn.Source = (*Sequencer)(nil)

// Open opens a sequencer and acquires a node ID of it. With nil Options, it
// opens an existing one with its settings.
//
// If the sequencer does not exist and the Options have a layout, Open creates
// it. If it exists with another configuration, the error
// matches grant.ErrMismatch and contains both. If it was destroyed, the error matches
// grant.ErrDestroyed: create it again explicitly, with grant.Create. If the
// time of the layout has ended, it matches firn.ErrTimeOver. Nothing is written
// before all arguments are checked.
//
// If the context ends first, Open returns at once. It gives back a node ID that
// it has claimed in the background, for at most ten seconds.
func Open(ctx context.Context, s grant.Store, name string, o *Options) (*Sequencer, error) {
	return open(ctx, s, name, o, 64, "Open128", firn.NewGenerator)
}

// Open128 is like Open, for layouts of 128 bits.
func Open128(ctx context.Context, s grant.Store, name string, o *Options) (*SequencerOf[firn.ID128], error) {
	return open(ctx, s, name, o, 128, "Open", firn.NewGenerator128)
}

// prepare looks up or creates the sequencer. check returns an error if its
// layout is unsuitable.
func (o *Options) prepare(ctx context.Context, s grant.Store, name string,
	check func(firn.Layout) error) (info grant.Info, err error) {
	var created grant.Config // if it does not exist
	if !o.Layout.IsZero() {
		if err := check(o.Layout); err != nil {
			return info, err
		}
		created = grant.DefaultConfig(s, o.Layout, o.MaxAhead)
		created.Window = cmp.Or(o.Window, created.Window)
		created.Prefix = o.Prefix
		if err := created.Check(); err != nil {
			return info, err
		}
	}
	info, err = grant.Lookup(ctx, s, name)
	if errors.Is(err, grant.ErrNotFound) && !o.Layout.IsZero() && !o.MustExist {
		info, err = grant.Create(ctx, s, name, created, &grant.AdminOptions{Now: o.Now})
		if errors.Is(err, grant.ErrMismatch) {
			info, err = grant.Lookup(ctx, s, name) // another process has created it in the meantime
		}
	}
	if err != nil {
		return info, err
	}
	want := info.Config
	want.Layout, want.Prefix = cmp.Or(o.Layout, want.Layout), cmp.Or(o.Prefix, want.Prefix)
	if o.MaxAhead != nil {
		want.MaxAhead = *o.MaxAhead
	}
	return info, cmp.Or(info.Check(want, o.now()), check(info.Config.Layout))
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// Next returns the next ID. It waits, under the context, like
// firn.Generator.Next, and also while the window must be renewed first. If the
// store did not answer in time, the error matches ErrUnavailable; errors of
// package grant explain why no node ID can be acquired.
func (q *SequencerOf[I]) Next(ctx context.Context) (id I, err error) {
	if g := q.current.Load(); g != nil {
		if id, err = g.Next(ctx); err == nil || !hasEnded(err) {
			return id, err
		}
	}
	err = q.do(ctx, func(g *firn.GeneratorOf[I]) error {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// TryNext returns the next ID without waiting. Its errors are those of
// firn.Generator.TryNext and of Next. If an ID first needs an answer of the
// store, the error matches firn.ErrExhausted too, but is not a *firn.WaitError:
// the store was asked, and trying again a moment later may help.
func (q *SequencerOf[I]) TryNext() (id I, err error) {
	if g := q.current.Load(); g != nil {
		if id, err = g.TryNext(); !hasEnded(err) {
			return id, err
		}
	}
	return id, q.noWindow()
}

// noWindow requests a window and returns why there is no open one.
func (q *SequencerOf[I]) noWindow() error {
	status, _ := q.keeper.Status()
	q.want()
	if err := q.refused(status); err != nil {
		return err
	}
	return fmt.Errorf("%w: no window of sequencer %s is open", firn.ErrExhausted, q.name)
}

// NextBatch returns the next n IDs, at consecutive slots, and waits like Next;
// see firn.Generator.NextBatch. For a batch that spans more than 11/12 of a
// window, the error matches firn.ErrBatchTooLarge.
func (q *SequencerOf[I]) NextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if err = q.checkBatch(n); err != nil {
		return b, err
	}
	err = q.do(ctx, func(g *firn.GeneratorOf[I]) error {
		b, err = g.NextBatch(ctx, n)
		return err
	})
	return b, err
}

// TryNextBatch is like NextBatch but never waits; see TryNext.
func (q *SequencerOf[I]) TryNextBatch(n int) (b firn.BatchOf[I], err error) {
	if err := q.checkBatch(n); err != nil {
		return b, err
	}
	if g := q.current.Load(); g != nil {
		if b, err = g.TryNextBatch(n); !hasEnded(err) {
			return b, err
		}
	}
	return b, q.noWindow()
}

// fillPiece is how many IDs of a long Fill are taken at once, so that a piece
// that reaches the end of a window loses few.
const fillPiece = 4096

// Fill fills dst with the next len(dst) IDs, in order, in pieces as they become
// free, across waits and windows. After an error, the contents of dst must not
// be used; the IDs taken so far are lost.
func (q *SequencerOf[I]) Fill(ctx context.Context, dst []I) error {
	for len(dst) > 0 {
		// A piece that reaches the end of a window is taken again as a whole.
		piece := dst[:min(len(dst), fillPiece)]
		if err := q.do(ctx, func(g *firn.GeneratorOf[I]) error { return g.Fill(ctx, piece) }); err != nil {
			return err
		}
		dst = dst[len(piece):]
	}
	return nil
}
