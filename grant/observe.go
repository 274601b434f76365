package grant

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Request is a kind of request to a Store: what it calls, for logs and
// traces.
type Request string

// The kinds of requests that an Observer sees.
const (
	RequestGet     Request = "get"
	RequestGetMany Request = "get many"
	RequestCAS     Request = "cas"
	RequestList    Request = "list"
	RequestLineage Request = "lineage"
	RequestTime    Request = "time"
)

// An Observer is called before each request to a Store, with its key or prefix
// if it has one. It returns the context for the request, and a function that is
// called with the result: whether a CAS was applied, and the error. It must be
// safe for concurrent use by multiple goroutines.
type Observer func(ctx context.Context, request Request, key string) (
	_ context.Context, end func(applied bool, err error))

// Observe returns a Store that calls observe before every request to s.
//
// The result has the methods of the optional interfaces but Dangers and Paced,
// and As reports which of them s has. The others return errors.ErrUnsupported.
// What s has besides, such as Dangers and Paced, As returns from s itself.
//
// The result is always a Watcher. It reports writes made through it and, if s
// is a Watcher, changes that s reports. So the members of a process learn at
// once of the process's own changes.
func Observe(s Store, observe Observer) Store { return &observed{Store: s, observe: observe} }

type observed struct {
	Store
	observe Observer
	own     echo
}

// An echo notifies watchers of what their own process has written. Its zero
// value is ready for use.
type echo struct {
	mu    sync.Mutex               // guards waits; no call waits while holding it
	waits map[string]chan struct{} // by key; closed, and forgotten, at the next write
}

// next returns a channel that is closed at the next write of a key.
func (e *echo) next(key string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waits == nil {
		e.waits = make(map[string]chan struct{})
	}
	if e.waits[key] == nil {
		e.waits[key] = make(chan struct{})
	}
	return e.waits[key]
}

// notify notifies the watchers of a key without waiting for them.
func (e *echo) notify(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := e.waits[key]; c != nil {
		close(c)
		delete(e.waits, key)
	}
}

// watch reports changes of a key until ctx is done. It also passes on values
// from other, which may be nil, until that is closed.
func (e *echo) watch(ctx context.Context, key string, other <-chan struct{}) <-chan struct{} {
	hints := make(chan struct{}, 1)
	own := e.next(key)
	go func() {
		defer close(hints)
		for {
			select {
			case <-own:
				own = e.next(key) // before the hint, so that a write since is not missed
			case _, ok := <-other:
				if !ok {
					other = nil
					continue
				}
			case <-ctx.Done():
				return
			}
			select {
			case hints <- struct{}{}:
			default: // a value is already waiting
			}
		}
	}()
	return hints
}

// Unwrap is for As.
func (o *observed) Unwrap() Store { return o.Store }

func (o *observed) Get(ctx context.Context, key string) ([]byte, error) {
	ctx, end := o.observe(ctx, RequestGet, key)
	value, err := o.Store.Get(ctx, key)
	end(false, err)
	return value, err
}

func (o *observed) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	ctx, end := o.observe(ctx, RequestCAS, key)
	applied, err := o.Store.CAS(ctx, key, old, next)
	end(applied, err)
	if applied || err != nil { // the write may have been applied despite an error
		o.own.notify(key)
	}
	return applied, err
}

func (o *observed) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	ctx, end := o.observe(ctx, RequestList, prefix)
	err := o.Store.List(ctx, prefix, yield)
	end(false, err)
	return err
}

func (o *observed) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	s, ok := As[MultiGetter](o.Store)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	ctx, end := o.observe(ctx, RequestGetMany, "")
	values, err := s.GetMany(ctx, keys)
	end(false, err)
	return values, err
}

func (o *observed) Watch(ctx context.Context, key string) <-chan struct{} {
	var other <-chan struct{}
	if s, ok := As[Watcher](o.Store); ok {
		other = s.Watch(ctx, key)
	}
	return o.own.watch(ctx, key, other)
}

func (o *observed) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	s, ok := As[Lineage](o.Store)
	if !ok {
		return "", 0, errors.ErrUnsupported
	}
	ctx, end := o.observe(ctx, RequestLineage, "")
	identity, revision, err = s.Lineage(ctx)
	end(false, err)
	return identity, revision, err
}

func (o *observed) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	s, ok := As[Clock](o.Store)
	if !ok {
		return now, 0, errors.ErrUnsupported
	}
	ctx, end := o.observe(ctx, RequestTime, "")
	now, resolution, err = s.Time(ctx)
	end(false, err)
	return now, resolution, err
}
