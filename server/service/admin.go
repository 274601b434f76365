package service

import (
	"context"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/members"
)

// An Administrator is a Backend whose sequencers can be looked at and changed, for all
// servers of its store. It must be safe for use by many goroutines at once.
type Administrator interface {
	// Sequencers calls yield for each sequencer, in the order of their names. An error
	// with a name is of that one's record.
	Sequencers(ctx context.Context, yield func(name string, info grant.Info, err error) bool) error

	// Lookup returns one, or an error that is grant.ErrNotFound.
	Lookup(ctx context.Context, name string) (grant.Info, error)

	// Configure is grant.UsualConfig with its store.
	Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error)

	// Create creates one, or creates it again.
	Create(ctx context.Context, name string, c grant.Config) (grant.Info, error)

	// Attach, Detach and Destroy are those of package grant. The last two wait for
	// windows until ctx is done, and go on when they are called again.
	Attach(ctx context.Context, name string) (grant.Info, error)
	Detach(ctx context.Context, name string) (grant.Info, error)
	Destroy(ctx context.Context, name string) (grant.Info, error)

	// Nodes calls yield for each node number of a sequencer that was ever used.
	Nodes(ctx context.Context, name string, yield func(n grant.NodeInfo, err error) bool) error
}

// A Lister knows the servers of its store.
type Lister interface {
	Members(ctx context.Context) ([]members.Member, error)
}

// ask asks the store, unless it has been silent for too long.
func (c *Cluster) ask(ctx context.Context, n need, call func(context.Context) error) error {
	return ofStore(ctx, c.patience.during(ctx, n, call))
}

// askInfo is ask for what a sequencer is.
func (c *Cluster) askInfo(ctx context.Context, n need, call func(context.Context) (grant.Info, error)) (info grant.Info, err error) {
	err = c.ask(ctx, n, func(ctx context.Context) (err error) {
		info, err = call(ctx)
		return err
	})
	return info, err
}

// Sequencers of a Cluster are those of its store; so are all that follow.
func (c *Cluster) Sequencers(ctx context.Context, yield func(string, grant.Info, error) bool) error {
	return c.ask(ctx, need{}, func(ctx context.Context) error { return grant.Sequencers(ctx, c.c.Store, yield) })
}

// Lookup returns one sequencer.
func (c *Cluster) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{}, func(ctx context.Context) (grant.Info, error) { return grant.Lookup(ctx, c.c.Store, name) })
}

// Configure is the configuration of one that is to be created.
func (c *Cluster) Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error) {
	return grant.UsualConfig(c.c.Store, layout, maxAhead, window)
}

// Create creates a sequencer, or creates it again.
func (c *Cluster) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // which is none of the store's
	}
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) {
		return grant.Create(ctx, c.c.Store, name, config, time.Now())
	})
}

// Attach makes a detached sequencer usable again.
func (c *Cluster) Attach(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.AttachAll(ctx, c.c.Store, name) })
}

// Detach has all members give their numbers back.
func (c *Cluster) Detach(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.DetachAll(ctx, c.c.Store, name, nil) })
}

// Destroy has all members give their numbers back, for good.
func (c *Cluster) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Destroy(ctx, c.c.Store, name, nil) })
}

// Nodes calls yield for each node number of a sequencer.
func (c *Cluster) Nodes(ctx context.Context, name string, yield func(grant.NodeInfo, error) bool) error {
	return c.ask(ctx, need{}, func(ctx context.Context) error { return grant.Nodes(ctx, c.c.Store, name, yield) })
}

// Members are the servers that have announced themselves in the store.
func (c *Cluster) Members(ctx context.Context) (all []members.Member, err error) {
	err = c.ask(ctx, need{}, func(ctx context.Context) (err error) {
		all, err = members.List(ctx, c.c.Store, time.Now())
		return err
	})
	return all, err
}
