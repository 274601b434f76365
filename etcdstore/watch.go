package etcdstore

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firnid/firn/grant"
)

// rewatch is how long a watch that etcd has ended waits before the next, at
// least; at most it is five times as long. An etcd that loses its leader ends
// all watches at one moment, and they should not all come back at one.
const rewatch = time.Second

// Watch tells of changes of a key until ctx is done or the store is closed. It
// also tells when it begins, and when it begins again after a failure, because
// of what may have changed before.
func (s *Store) Watch(ctx context.Context, key string) <-chan struct{} {
	told := make(chan struct{}, 1) // so that telling never waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ctx.Err() != nil || grant.CheckKey(key) != nil {
		close(told) // there is nothing to tell
		return told
	}
	s.watchers.Go(func() {
		defer close(told)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		for {
			if s.watch(ctx, key, told); ctx.Err() != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(rewatch + rand.N(4*rewatch)):
			}
		}
	})
	return told
}

// watch tells of changes until etcd ends it.
func (s *Store) watch(ctx context.Context, key string, told chan<- struct{}) {
	// The context of one watch, so that nothing of it is left when it ends. A
	// member without a leader hears of no change, and ends it.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for range s.client.Watch(ctx, s.prefix+key, clientv3.WithCreatedNotify()) {
		if ctx.Err() != nil {
			return
		}
		select {
		case told <- struct{}{}:
		default: // it has not read the last one yet
		}
	}
}
