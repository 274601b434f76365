package sequencer

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Options configure how a sequencer is opened. Layout, MaxAhead, Window and
// Prefix are settings of the sequencer: they are the same for every process
// that opens it, and set when it is created. If they are zero, an existing
// sequencer's settings apply, or defaults if it is created now. All other
// fields are the process's own.
type Options struct {
	// Layout is the layout of the IDs. If it is zero, the sequencer must exist,
	// and its layout is used.
	Layout firn.Layout

	// MaxAhead is how far IDs may run ahead of the clock, in whole
	// milliseconds; nil means that of an existing sequencer, or the layout's
	// default.
	MaxAhead *time.Duration

	// Window is how long a node ID is held without contact to the store, in
	// whole milliseconds. The default is 30 s in a directory, 10 min in a
	// bucket or Kubernetes, 60 s elsewhere, or longer if the layout requires
	// it. An existing sequencer's window applies instead, and a difference is
	// logged: grant.SetWindow changes it while members run.
	Window time.Duration

	// Prefix is that of grant.Config; empty means none, or that of an existing
	// sequencer.
	Prefix string

	// MustExist prevents Open from creating the sequencer.
	MustExist bool

	// WaitForNode makes calls wait, under their contexts, if no node ID is
	// free. Without it, they fail at once with an error that matches
	// grant.ErrNodesExhausted.
	WaitForNode bool

	// Idle opens the sequencer without a node ID, until Join.
	Idle bool

	// Nodes are the node IDs that the process may take: for example, one of two
	// ranges for two stores whose IDs meet in one database. If Lo and Hi are
	// equal, the node ID is pinned: it is acquired only while no other process
	// holds it. If Hi exceeds the layout's greatest node ID, Open fails. Nil
	// means all of the layout.
	Nodes *grant.NodeRange

	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger

	// AllowClockAhead allows the process to acquire a node ID even if its clock
	// is more than ten seconds ahead of the store's, or of those of other
	// members. The node ID is then blocked for others until the time that this
	// clock shows.
	AllowClockAhead bool

	// AllowClockBehind allows the process to acquire a node ID even if its
	// clock is more than ten seconds behind those of other members.
	AllowClockBehind bool
}

// Config returns the configuration with which Open creates a sequencer in s.
// Its Nodes are nil: those of the Options are the process's own. Check reports
// what is invalid, such as no layout, which nil Options have. s may be nil, as
// for grant.DefaultConfig.
func (o *Options) Config(s grant.Store) grant.Config {
	o = cmp.Or(o, new(Options))
	c := grant.DefaultConfig(s, o.Layout, o.MaxAhead)
	c.Window = cmp.Or(o.Window, c.Window)
	c.Prefix = o.Prefix
	return c
}

// memberOptions returns those of o that a Keeper has.
func (o *Options) memberOptions() *grant.MemberOptions {
	return &grant.MemberOptions{
		Nodes: o.Nodes, Now: o.Now, Logger: o.Logger,
		AllowClockAhead: o.AllowClockAhead, AllowClockBehind: o.AllowClockBehind,
	}
}

// lookupOrCreate looks up or creates the sequencer. check returns an error if
// its layout is unsuitable.
func (o *Options) lookupOrCreate(ctx context.Context, s grant.Store, name string,
	check func(firn.Layout) error) (info grant.Info, err error) {
	var created grant.Config // if it does not exist
	if !o.Layout.IsZero() {
		if err := check(o.Layout); err != nil {
			return info, err
		}
		created = o.Config(s)
		if err := created.Check(); err != nil {
			return info, err
		}
	}
	if o.Layout.IsZero() || o.MustExist {
		info, err = grant.Lookup(ctx, s, name)
	} else {
		info, err = grant.LookupOrCreate(ctx, s, name, created, &grant.CreateOptions{Now: o.Now})
	}
	if err != nil {
		return info, err
	}
	want := info.Config
	want.Layout, want.Prefix = cmp.Or(o.Layout, want.Layout), cmp.Or(o.Prefix, want.Prefix)
	if o.MaxAhead != nil {
		want.MaxAhead = *o.MaxAhead
	}
	return info, cmp.Or(info.CheckAgainst(want, o.now()), check(info.Config.Layout))
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}
