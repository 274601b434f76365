package sequencer

import (
	"cmp"
	"context"
	"errors"
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
