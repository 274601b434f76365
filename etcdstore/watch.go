package etcdstore

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firnid/firn/grant"
)

// rewatch is the minimum wait before a watch that etcd has ended is restarted;
// the maximum is five times as long. An etcd that loses its leader ends all
// watches at once, and they should not all return at once.
const rewatch = time.Second

// Watch reports changes of a key until ctx is done or the store is closed. It
// also reports when it begins, and when it restarts after a failure, because
// changes may have been missed.
func (s *store) Watch(ctx context.Context, key string) <-chan struct{} {
	changes := make(chan struct{}, 1) // so that notifying never waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || ctx.Err() != nil || grant.CheckKey(key) != nil {
		close(changes) // no change can follow
		return changes
	}
	s.watchers.Go(func() {
		defer close(changes)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		for {
			if s.watch(ctx, key, changes); ctx.Err() != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(rewatch + rand.N(4*rewatch)):
			}
		}
	})
	return changes
}

// watch reports changes until etcd ends it.
func (s *store) watch(ctx context.Context, key string, changes chan<- struct{}) {
	// A context for one watch, so that nothing of it is left when it ends. A
	// member without a leader sees no changes, and ends the watch.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for range s.client.Watch(ctx, s.prefix+key, clientv3.WithCreatedNotify()) {
		if ctx.Err() != nil {
			return
		}
		select {
		case changes <- struct{}{}:
		default: // a value is already waiting
		}
	}
}
