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

// A StoreAdmin is the Administrator of a store. Its calls stop waiting for a
// store that has been silent for five seconds. It must be made by NewStoreAdmin,
// and is closed by its Cluster.
type StoreAdmin struct {
	store    grant.Store
	patience *patience
}

var _ Administrator = (*StoreAdmin)(nil)

// NewStoreAdmin makes a StoreAdmin. silent is nil if it is unknown whether the
// store answers: then calls wait until their contexts are done.
func NewStoreAdmin(s grant.Store, silent Silence) *StoreAdmin {
	return &StoreAdmin{store: s, patience: newPatience(s, silent)}
}

// Store returns the store of the StoreAdmin.
func (a *StoreAdmin) Store() grant.Store { return a.store }

// ask calls the store, unless it has been silent for too long.
func (a *StoreAdmin) ask(ctx context.Context, n need, call func(context.Context) error) error {
	return storeError(ctx, a.patience.during(ctx, n, call))
}

// askFor is ask for a call that has a result.
func askFor[T any](ctx context.Context, a *StoreAdmin, n need, call func(context.Context) (T, error)) (result T, err error) {
	err = a.ask(ctx, n, func(ctx context.Context) (err error) {
		result, err = call(ctx)
		return err
	})
	return result, err
}

// Sequencers calls yield for each sequencer of the store.
func (a *StoreAdmin) Sequencers(ctx context.Context, yield func(string, grant.Info, error) bool) error {
	return a.ask(ctx, need{}, func(ctx context.Context) error { return grant.Sequencers(ctx, a.store, yield) })
}

// Lookup returns one sequencer.
func (a *StoreAdmin) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return askFor(ctx, a, need{}, func(ctx context.Context) (grant.Info, error) { return grant.Lookup(ctx, a.store, name) })
}

// Configure returns the configuration of a sequencer to create.
func (a *StoreAdmin) Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error) {
	return grant.DefaultConfig(a.store, layout, maxAhead, window)
}

// Create creates a sequencer, or creates it again.
func (a *StoreAdmin) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // not an error of the store
	}
	return askFor(ctx, a, need{writes: true}, func(ctx context.Context) (grant.Info, error) {
		return grant.Create(ctx, a.store, name, config, time.Now())
	})
}

// Attach makes a detached sequencer usable again.
func (a *StoreAdmin) Attach(ctx context.Context, name string) (grant.Info, error) {
	return askFor(ctx, a, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Attach(ctx, a.store, name) })
}

// Detach makes all members give their node IDs back.
func (a *StoreAdmin) Detach(ctx context.Context, name string) (grant.Info, error) {
	return askFor(ctx, a, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Detach(ctx, a.store, name, nil) })
}

// Destroy makes all members give their node IDs back, permanently.
func (a *StoreAdmin) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return askFor(ctx, a, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Destroy(ctx, a.store, name, nil) })
}

// Nodes calls yield for each node ID of a sequencer.
func (a *StoreAdmin) Nodes(ctx context.Context, name string, yield func(grant.NodeInfo, error) bool) error {
	return a.ask(ctx, need{}, func(ctx context.Context) error { return grant.Nodes(ctx, a.store, name, yield) })
}

// Members returns the servers that have announced themselves in the store.
func (a *StoreAdmin) Members(ctx context.Context) ([]members.Member, error) {
	return askFor(ctx, a, need{}, func(ctx context.Context) ([]members.Member, error) { return members.List(ctx, a.store, time.Now()) })
}
