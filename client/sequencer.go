package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/firnid/firn"
)

// A Sequencer hands out the IDs of one name. It is safe for concurrent use by
// multiple goroutines and must be made by a Client.
//
// It is a firn.Source. Next, TryNext and Fill hand out IDs that were fetched
// before; NextBatch asks a server. See SequencerOf for all methods.
type Sequencer = SequencerOf[firn.ID]

// A SequencerOf is a Sequencer of 64-bit or 128-bit IDs.
type SequencerOf[I firn.AnyID] struct {
	prefetch *firn.PrefetcherOf[I]
	client   *Client
	name     string
	path     string // of the endpoint next, escaped
	view     *serverView
	forget   func()

	closed     atomic.Bool
	packed     atomic.Bool  // the layout has no runs
	maxRequest atomic.Int64 // how many IDs can be requested at a time

	batches, ids, failures, lost atomic.Uint64

	ctx    context.Context // of the probes; done when the sequencer is closed
	cancel context.CancelFunc
	probes sync.WaitGroup // none begins after closed is set

	mu      sync.Mutex
	lastErr error // error of the last attempt
}

var _ firn.Source = (*Sequencer)(nil)

// sequencerOf finds or makes a sequencer.
func sequencerOf[I firn.AnyID](c *Client, all map[string]*SequencerOf[I], name string) *SequencerOf[I] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := all[name]; s != nil {
		return s
	}
	s := &SequencerOf[I]{
		client: c,
		name:   name,
		path:   "/v1/sequencers/" + url.PathEscape(name) + "/next",
		view:   c.set.newView(name),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.maxRequest.Store(maxCount)
	s.prefetch = firn.NewPrefetcher(fetcher[I]{s}, c.config.Prefetch)
	s.forget = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if all[name] == s {
			delete(all, name)
		}
	}
	if c.closed {
		s.closed.Store(true)
		s.cancel()
		s.prefetch.Close(context.Background()) // nothing has begun
		return s
	}
	all[name] = s
	return s
}

// Next returns the next ID. It waits only if none has been fetched: for the
// first one, after a long pause, and if IDs are used faster than they arrive.
// If the context is done, only this call fails.
//
// An error explains why no server has answered, and matches the errors of the
// problems that servers have found, or firn.ErrUnavailable if they found none;
// or it is an *Error that every server would return. The next call tries again.
func (s *SequencerOf[I]) Next(ctx context.Context) (I, error) {
	id, err := s.prefetch.Next(ctx)
	if err != nil { // most calls succeed, and take a few nanoseconds
		err = s.explain(ctx, err)
	}
	return id, err
}

// TryNext returns the next ID if one has been fetched, and never waits. If
// there is no ID, it triggers a fetch. The error is then firn.ErrExhausted or,
// if the last fetch failed, contains that one's; see firn.PrefetcherOf.TryNext.
func (s *SequencerOf[I]) TryNext() (I, error) {
	return s.prefetch.TryNext()
}

// Fill fills dst with IDs. Other callers may get IDs in between. After an
// error, the contents of dst are undefined, and the IDs taken so far are lost.
func (s *SequencerOf[I]) Fill(ctx context.Context, dst []I) error {
	return s.explain(ctx, s.prefetch.Fill(ctx, dst))
}

// Close closes the sequencer: calls return firn.ErrClosed from now on,
// including those that wait. A NextBatch in progress ends by its own context.
// Close waits until nothing runs any more, or until ctx is done. It may be
// called more than once. Afterwards, the Client returns a new sequencer for the
// name.
func (s *SequencerOf[I]) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed.Store(true)
	s.mu.Unlock()
	s.cancel()
	s.forget()
	return cmp.Or(s.prefetch.Close(ctx), waitFor(ctx, &s.probes))
}

// Stats are statistics of a Sequencer since it was made.
type Stats struct {
	// Fetches includes the batches of NextBatch. Discarded includes IDs that
	// arrived after those of another server, or tested a server.
	firn.PrefetchStats

	IDs      uint64 // IDs in the batches
	Failures uint64 // failed requests; any IDs they made are lost
	Err      error  // error of the last request, if it failed
}

// Stats returns statistics of the sequencer.
func (s *SequencerOf[I]) Stats() Stats {
	p := s.prefetch.Stats()
	p.Fetches = s.batches.Load()
	p.Discarded += s.lost.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{PrefetchStats: p, IDs: s.ids.Load(), Failures: s.failures.Load(), Err: s.lastErr}
}

// explain turns the prefetcher's error of a call that gave up into one that has
// the last failure of each server. That a token failed is not among these.
func (s *SequencerOf[I]) explain(ctx context.Context, err error) error {
	if err == nil || isTokenError(err) {
		return err
	}
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return s.failure(ended)
	}
	return err
}

// NextBatch requests n IDs from a server, and returns either all of them or an
// error. One request has at most 100,000 IDs, or fewer if a server allows
// fewer or the whole batch took too long. Then more requests follow, perhaps to
// other servers, and the batch contains their runs one after the other. IDs
// that arrived before an error are lost.
//
// A failed request is sent to other servers, and repeated after their pauses,
// until Config.Patience has passed or ctx is done. NextBatch gives up earlier
// if no server will be available in that time.
func (s *SequencerOf[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	if n < 1 {
		return firn.BatchOf[I]{}, fmt.Errorf("client: a batch of %d IDs is not possible: ask for at least 1", n)
	}
	b, err := s.fetch(ctx, n)
	if err != nil || b.Len() == n {
		return b, err
	}
	runs := b.Runs()
	for got := b.Len(); got < n; got += b.Len() {
		if b, err = s.fetch(ctx, n-got); err != nil {
			return firn.BatchOf[I]{}, err
		}
		runs = append(runs, b.Runs()...)
	}
	return firn.BatchFromRuns(runs...)
}

// waitFor waits until nothing runs or ctx is done.
func waitFor(ctx context.Context, all *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		all.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
