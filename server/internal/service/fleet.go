package service

import (
	"context"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/members"
)

// An Administrator lists, shows and changes sequencers and servers of a store,
// for all its servers. It must be safe for concurrent use.
type Administrator interface {
	// Sequencers calls yield for each sequencer, in the order of names. An error
	// with a name concerns the record of that sequencer.
	Sequencers(ctx context.Context, yield func(name string, info grant.Info, err error) bool) error

	// Lookup returns one sequencer, or an error that matches grant.ErrNotFound.
	Lookup(ctx context.Context, name string) (grant.Info, error)

	// Configure is grant.DefaultConfig with the store of the Administrator.
	Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error)

	// Create creates a sequencer, or creates it again.
	Create(ctx context.Context, name string, c grant.Config) (grant.Info, error)

	// Attach, Detach and Destroy are those of package grant. The last two wait for
	// windows to end until ctx is done, and continue when they are called again.
	Attach(ctx context.Context, name string) (grant.Info, error)
	Detach(ctx context.Context, name string) (grant.Info, error)
	Destroy(ctx context.Context, name string) (grant.Info, error)

	// Nodes calls yield for each node ID of a sequencer that was ever used.
	Nodes(ctx context.Context, name string, yield func(n grant.NodeInfo, err error) bool) error

	// Members returns the servers that have announced themselves in the store.
	Members(ctx context.Context) ([]members.Member, error)
}

// A Fleet is the Administrator of a store. Its calls stop waiting for a store
// that has been silent for five seconds. It must be made by NewFleet, and is
// closed by its Cluster.
type Fleet struct {
	store    grant.Store
	members  *members.Lister
	patience *patience
}

var _ Administrator = (*Fleet)(nil)

// NewFleet makes a Fleet. silent is nil if it is unknown whether the store
// answers: then calls wait until their contexts are done.
func NewFleet(s grant.Store, silent Silence) *Fleet {
	return &Fleet{store: s, members: members.NewLister(s), patience: newPatience(s, silent)}
}

// Store returns the store of the Fleet.
func (f *Fleet) Store() grant.Store { return f.store }

// Admin returns the Fleet itself: see Backend.
func (f *Fleet) Admin() Administrator { return f }

// ask calls the store, unless it has been silent for too long.
func (f *Fleet) ask(ctx context.Context, n need, call func(context.Context) error) error {
	return storeError(ctx, f.patience.during(ctx, n, call))
}

// askInfo is ask for a call that returns a sequencer's Info.
func (f *Fleet) askInfo(ctx context.Context, n need, call func(context.Context) (grant.Info, error)) (info grant.Info, err error) {
	err = f.ask(ctx, n, func(ctx context.Context) (err error) {
		info, err = call(ctx)
		return err
	})
	return info, err
}

// Sequencers calls yield for each sequencer of the store.
func (f *Fleet) Sequencers(ctx context.Context, yield func(string, grant.Info, error) bool) error {
	return f.ask(ctx, need{}, func(ctx context.Context) error { return grant.Sequencers(ctx, f.store, yield) })
}

// Lookup returns one sequencer.
func (f *Fleet) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{}, func(ctx context.Context) (grant.Info, error) { return grant.Lookup(ctx, f.store, name) })
}

// Configure returns the configuration of a sequencer to create.
func (f *Fleet) Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error) {
	return grant.DefaultConfig(f.store, layout, maxAhead, window)
}

// Create creates a sequencer, or creates it again.
func (f *Fleet) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // not an error of the store
	}
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) {
		return grant.Create(ctx, f.store, name, config, time.Now())
	})
}

// Attach makes a detached sequencer usable again.
func (f *Fleet) Attach(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.AttachAll(ctx, f.store, name) })
}

// Detach makes all members give their node IDs back.
func (f *Fleet) Detach(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.DetachAll(ctx, f.store, name, nil) })
}

// Destroy makes all members give their node IDs back, permanently.
func (f *Fleet) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return f.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Destroy(ctx, f.store, name, nil) })
}

// Nodes calls yield for each node ID of a sequencer.
func (f *Fleet) Nodes(ctx context.Context, name string, yield func(grant.NodeInfo, error) bool) error {
	return f.ask(ctx, need{}, func(ctx context.Context) error { return grant.Nodes(ctx, f.store, name, yield) })
}

// Members returns the servers that have announced themselves in the store.
func (f *Fleet) Members(ctx context.Context) (all []members.Member, err error) {
	err = f.ask(ctx, need{}, func(ctx context.Context) (err error) {
		all, err = f.members.List(ctx, time.Now())
		return err
	})
	return all, err
}
