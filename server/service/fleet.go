package service

import (
	"context"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/members"
)

// An Administrator looks at sequencers and servers and changes them, for all
// servers of its store. It must be safe for use by many goroutines at once.
type Administrator interface {
	// Sequencers calls yield for each sequencer, in the order of their names. An
	// error with a name is of that one's record.
	Sequencers(ctx context.Context, yield func(name string, info grant.Info, err error) bool) error

	// Lookup returns one, or an error that is grant.ErrNotFound.
	Lookup(ctx context.Context, name string) (grant.Info, error)

	// Configure is grant.DefaultConfig with its store.
	Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error)

	// Create creates one, or creates it again.
	Create(ctx context.Context, name string, c grant.Config) (grant.Info, error)

	// Attach, Detach and Destroy are those of package grant. The last two wait for
	// windows until ctx is done, and go on when they are called again.
	Attach(ctx context.Context, name string) (grant.Info, error)
	Detach(ctx context.Context, name string) (grant.Info, error)
	Destroy(ctx context.Context, name string) (grant.Info, error)

	// Nodes calls yield for each node ID of a sequencer that was ever used.
	Nodes(ctx context.Context, name string, yield func(n grant.NodeInfo, err error) bool) error

	// Members are the servers that have announced themselves in the store.
	Members(ctx context.Context) ([]members.Member, error)
}

// A Fleet is the Administrator of a store. Its calls do not wait for a store
// that has been silent for five seconds. It must be made by NewFleet, and ends
// with the Cluster that it is given to.
type Fleet struct {
	store    grant.Store
	members  *members.Lister
	patience *patience
}

var _ Administrator = (*Fleet)(nil)

// NewFleet makes a Fleet. silent is how long the store has answered no read and
// no write, 0 if it does; nil means that it is not known, so that calls wait
// under their contexts.
func NewFleet(s grant.Store, silent func() (reads, writes time.Duration)) *Fleet {
	return &Fleet{store: s, members: members.NewLister(s), patience: newPatience(s, silent)}
}

// Store is the store that the Fleet is over.
func (f *Fleet) Store() grant.Store { return f.store }

// Admin is the Fleet itself: see Backend.
func (f *Fleet) Admin() Administrator { return f }

// ask asks the store, unless it has been silent for too long.
func (f *Fleet) ask(ctx context.Context, n need, call func(context.Context) error) error {
	return storeError(ctx, f.patience.during(ctx, n, call))
}

// askInfo is ask for what a sequencer is.
func (f *Fleet) askInfo(ctx context.Context, n need, call func(context.Context) (grant.Info, error)) (info grant.Info, err error) {
	err = f.ask(ctx, n, func(ctx context.Context) (err error) {
		info, err = call(ctx)
		return err
	})
	return info, err
}

// Sequencers of a Fleet are those of its store; so are all that follow.
func (f *Fleet) Sequencers(ctx context.Context, yield func(string, grant.Info, error) bool) error {
	return f.ask(ctx, need{}, func(ctx context.Context) error { return grant.Sequencers(ctx, f.store, yield) })
}

// Lookup returns one sequencer.
func (f *Fleet) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{}, func(ctx context.Context) (grant.Info, error) { return grant.Lookup(ctx, f.store, name) })
}

// Configure is the configuration of one that is to be created.
func (f *Fleet) Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error) {
	return grant.DefaultConfig(f.store, layout, maxAhead, window)
}

// Create creates a sequencer, or creates it again.
func (f *Fleet) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // which is none of the store's
	}
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) {
		return grant.Create(ctx, f.store, name, config, time.Now())
	})
}

// Attach makes a detached sequencer usable again.
func (f *Fleet) Attach(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.AttachAll(ctx, f.store, name) })
}

// Detach has all members give their numbers back.
func (f *Fleet) Detach(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.DetachAll(ctx, f.store, name, nil) })
}

// Destroy has all members give their numbers back, for good.
func (f *Fleet) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Destroy(ctx, f.store, name, nil) })
}

// Nodes calls yield for each node ID of a sequencer.
func (f *Fleet) Nodes(ctx context.Context, name string, yield func(grant.NodeInfo, error) bool) error {
	return f.ask(ctx, need{}, func(ctx context.Context) error { return grant.Nodes(ctx, f.store, name, yield) })
}

// Members are the servers that have announced themselves in the store.
func (f *Fleet) Members(ctx context.Context) (all []members.Member, err error) {
	err = f.ask(ctx, need{}, func(ctx context.Context) (err error) {
		all, err = f.members.List(ctx, time.Now())
		return err
	})
	return all, err
}
