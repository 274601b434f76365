package service

import (
	"context"
	"errors"
	"time"

	"github.com/firnid/firn/grant"
)

// Admin returns the Cluster itself. Its own sequencers follow a change at once:
// the store notifies members of Detach and Destroy (grant.Observe), and Create
// and Attach wait until this server has its node ID again.
func (c *Cluster) Admin() Administrator { return c }

// Create creates a sequencer, or creates it again.
func (c *Cluster) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	info, err := c.StoreAdmin.Create(ctx, name, config)
	if err == nil {
		c.reattach(ctx, name)
	}
	return info, err
}

// Attach makes a detached sequencer usable again.
func (c *Cluster) Attach(ctx context.Context, name string) (grant.Info, error) {
	info, err := c.StoreAdmin.Attach(ctx, name)
	if err == nil {
		c.reattach(ctx, name)
	}
	return info, err
}

// reattachMost is how long reattach waits. After that, callers who want an ID
// get the error.
const reattachMost = 2 * time.Second

// reattach makes an open sequencer without a node ID read its configuration
// again. Otherwise the next call would be answered from an outdated state.
func (c *Cluster) reattach(ctx context.Context, name string) {
	e := c.openEntry(name)
	if e == nil || !e.lapsed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reattachMost)
	defer cancel()
	if err := e.attach(ctx); errors.Is(err, grant.ErrMismatch) {
		c.retire(name, e) // it has another layout now
	}
}
