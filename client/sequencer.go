package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
)

// A Sequencer hands out the IDs of one name. It is safe for concurrent use by
// multiple goroutines and must be made by a Client.
//
// It is a firn.Source. Next, TryNext and Fill hand out IDs that were fetched
// before; NextBatch asks a server.
type Sequencer = SequencerOf[firn.ID]

// A Sequencer128 is a Sequencer of 128-bit IDs.
type Sequencer128 = SequencerOf[firn.ID128]

// A SequencerOf is a Sequencer or a Sequencer128.
type SequencerOf[I firn.AnyID[I]] struct {
	prefetch *firn.PrefetcherOf[I]
	client   *Client
	name     string
	path     string // of the endpoint next, escaped
	view     *view
	forget   func()

	closed atomic.Bool
	packed atomic.Bool  // the layout has no runs
	most   atomic.Int64 // how many IDs can be requested at a time

	batches, ids, failures atomic.Uint64

	mu      sync.Mutex
	last    I     // the first ID of the last batch
	lastErr error // error of the last attempt
}

var (
	_ firn.Source    = (*Sequencer)(nil)
	_ firn.Source128 = (*Sequencer128)(nil)
)

// sequencerOf finds or makes a sequencer.
func sequencerOf[I firn.AnyID[I]](c *Client, all map[string]*SequencerOf[I], name string) *SequencerOf[I] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := all[name]; s != nil {
		return s
	}
	s := &SequencerOf[I]{
		client: c,
		name:   name,
		path:   "/v1/sequencers/" + url.PathEscape(name) + "/next",
		view:   c.roster.newView(),
	}
	s.most.Store(MaxCount)
	s.prefetch = firn.StartPrefetcher(fetcher[I]{s}, c.config.Prefetch)
	s.forget = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if all[name] == s {
			delete(all, name)
		}
	}
	if c.closed {
		s.closed.Store(true)
		s.prefetch.Close(context.Background()) // nothing has begun
		return s
	}
	all[name] = s
	return s
}

// Name returns the name of the sequencer.
func (s *SequencerOf[I]) Name() string { return s.name }

// Next returns the next ID. It waits only if none has been fetched: for the
// first one, after a long pause, and if IDs are used faster than they arrive.
// If the context is done, only this call fails.
//
// An error explains why no server has answered, or is an *Error that every
// server would return. The next call tries again.
func (s *SequencerOf[I]) Next(ctx context.Context) (I, error) {
	id, err := s.prefetch.Next(ctx)
	if err != nil {
		err = s.explain(err)
	}
	return id, err
}

// TryNext returns the next ID if one has been fetched, and never waits. If
// there is no ID, it triggers a fetch and returns an error that matches
// firn.ErrExhausted, and also the error of the last fetch if that failed.
func (s *SequencerOf[I]) TryNext() (I, error) {
	id, err := s.prefetch.TryNext()
	if err != nil {
		err = s.explain(err)
	}
	return id, err
}

// Fill fills dst with IDs. Other callers may get IDs in between. After an
// error, the contents of dst are undefined, and the IDs taken so far are lost.
func (s *SequencerOf[I]) Fill(ctx context.Context, dst []I) error {
	return s.explain(s.prefetch.Fill(ctx, dst))
}

// Close closes the sequencer: calls return ErrClosed from now on, including
// those that wait. A NextBatch in progress ends by its own context. Close waits
// until nothing runs any more, or until ctx is done. It may be called more than
// once. Afterwards, the Client returns a new sequencer for the name.
func (s *SequencerOf[I]) Close(ctx context.Context) error {
	s.closed.Store(true)
	s.forget()
	return s.prefetch.Close(ctx)
}

// Stats are statistics of a Sequencer since it was made.
type Stats struct {
	Batches   uint64 // batches received
	IDs       uint64 // IDs in them
	Failures  uint64 // failed requests; any IDs they made are lost
	Discarded uint64 // IDs that grew too old before they were used
	Waits     uint64 // calls of Next, TryNext and Fill that found no ID
	Err       error  // error of the last request, if it failed
}

// Stats returns statistics of the sequencer.
func (s *SequencerOf[I]) Stats() Stats {
	p := s.prefetch.Stats()
	return Stats{
		Batches:   s.batches.Load(),
		IDs:       s.ids.Load(),
		Failures:  s.failures.Load(),
		Discarded: p.Discarded,
		Waits:     p.Waits,
		Err:       s.lastError(),
	}
}

// explain turns an error of the prefetcher into one of this package.
func (s *SequencerOf[I]) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, firn.ErrClosed):
		return ErrClosed
	case err == context.DeadlineExceeded, err == context.Canceled:
		return s.interrupted(err)
	}
	return err
}

// interrupted returns the error of a context, with the reason for the wait.
func (s *SequencerOf[I]) interrupted(err error) error {
	if last := s.lastError(); last != nil {
		return fmt.Errorf("client: %s: %w, after a failure: %w", s.name, err, last)
	}
	return fmt.Errorf("client: %s: %w", s.name, err)
}

func (s *SequencerOf[I]) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastErr
}

// NextBatch requests n IDs from a server, and returns either all of them or an
// error. One request has at most MaxCount IDs, or fewer if a server allows
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
	return firn.BatchFromRuns(runs...), nil
}

// A fetcher is the source of a sequencer's prefetcher. It returns the result of
// a single request, because callers wait for it.
type fetcher[I firn.AnyID[I]] struct{ s *SequencerOf[I] }

func (f fetcher[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	return f.s.fetch(ctx, n)
}

// errPatience is the cause of a context that ends because of Config.Patience,
// not because of its caller.
var errPatience = errors.New("client: Config.Patience has passed")

// fetch gets one request for up to n IDs answered.
func (s *SequencerOf[I]) fetch(caller context.Context, n int) (firn.BatchOf[I], error) {
	none := firn.BatchOf[I]{}
	if s.name == "" || s.name == "." || s.name == ".." {
		return none, fmt.Errorf("client: %q is not the name of a sequencer: it begins with a letter or a digit", s.name)
	}
	ctx := caller
	if p := s.client.config.Patience; p > 0 {
		limited, cancel := context.WithTimeoutCause(caller, p, errPatience)
		defer cancel()
		ctx = limited
	}
	c := s.view.newRound()
	for {
		n = min(n, int(s.most.Load()))
		if s.closed.Load() {
			return none, ErrClosed
		}
		if err := ctx.Err(); err != nil {
			return none, s.ended(ctx)
		}
		i, wait := s.view.pick(&c)
		if i < 0 {
			if wait == 0 || time.Since(c.start)+wait > s.client.config.Patience {
				return none, s.giveUp()
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			continue
		}
		start := time.Now()
		packed := s.packed.Load()
		b, err := s.request(ctx, &s.view.servers[i], n, packed)
		if err == nil {
			s.worked(i)
			s.note(nil)
			s.batches.Add(1)
			s.ids.Add(uint64(b.Len()))
			return b, nil
		}

		var (
			said  *Error
			token *tokenError
		)
		switch {
		case errors.As(err, &token):
			return none, err
		case ctx.Err() != nil:
			// The caller gave up. A caller with little patience proves nothing
			// about the server, but one that it kept waiting for long does.
			if time.Since(start) >= s.client.config.Timeout/4 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				s.note(err)
				s.failed(i, start, true, 0, err)
			}
			return none, s.ended(ctx)
		case errors.As(err, &said):
			if said.Kind == "no-runs" && !packed {
				s.packed.Store(true)
				continue
			}
			if said.Kind == "batch-too-large" && n > 1 {
				s.most.Store(int64(n / 2))
				continue
			}
			s.note(err)
			if said.final() {
				return none, err
			}
			c.refused[i] = !said.again()
			s.failed(i, start, said.ofServer(), said.RetryAfter, err)
		default:
			s.note(err)
			// A server's answer for one sequencer proves nothing about others:
			// IDs may have the other width.
			var answer *AnswerError
			c.refused[i] = errors.As(err, &answer)
			s.failed(i, start, !c.refused[i], 0, err)
			if isTimeout(err) {
				if c.timeouts++; c.timeouts >= len(c.tried) {
					n = max(1, n/2) // perhaps it is too much for all of them
				}
			}
		}
		c.tried[i] = true
		if s.client.config.Patience < 0 {
			c.refused[i] = true // once is enough
		}
	}
}

// ended returns the error of a context that is done: the caller's, or that of
// Patience.
func (s *SequencerOf[I]) ended(ctx context.Context) error {
	if context.Cause(ctx) == errPatience {
		return s.giveUp()
	}
	return s.interrupted(ctx.Err())
}

// giveUp returns the error of a batch that no server returned.
func (s *SequencerOf[I]) giveUp() error {
	errs := s.view.errors()
	if len(errs) == 0 { // too early to say that a server has failed
		errs = append(errs, fmt.Errorf("no answer in time: %w", context.DeadlineExceeded))
	}
	return &giveUpError{s.name, errs}
}

// worked records that a server has answered, and logs it if it had failed.
func (s *SequencerOf[I]) worked(i int) {
	if s.view.worked(i) {
		s.client.config.Log.Info("server answers again", "server", s.view.servers[i].name, "sequencer", s.name)
	}
}

// failed records that a server has failed, and logs it if it answered before.
func (s *SequencerOf[I]) failed(i int, start time.Time, whole bool, wish time.Duration, err error) {
	if s.view.failed(i, start, whole, wish, err) {
		s.client.config.Log.Warn("server failed", "server", s.view.servers[i].name, "sequencer", s.name, "err", err)
	}
}

// note records the result of the last request.
func (s *SequencerOf[I]) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
	if err != nil {
		s.failures.Add(1)
	}
}

// isRepeat reports whether the first ID of a batch equals that of the previous
// batch. That detects some cached answers if something drops the nonce.
func (s *SequencerOf[I]) isRepeat(first I) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first == s.last {
		return true
	}
	s.last = first
	return false
}
