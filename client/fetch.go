package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
)

// A fetcher is the source of a sequencer's prefetcher. It returns the result of
// a single request, because callers wait for it.
type fetcher[I firn.AnyID[I]] struct{ sequencer *SequencerOf[I] }

func (f fetcher[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	return f.sequencer.fetch(ctx, n)
}

// fetch gets one request for up to n IDs answered.
func (s *SequencerOf[I]) fetch(caller context.Context, n int) (firn.BatchOf[I], error) {
	none := firn.BatchOf[I]{}
	if s.name == "" || s.name == "." || s.name == ".." {
		return none, fmt.Errorf("client: %q is not the name of a sequencer: it begins with a letter or a digit", s.name)
	}
	ctx := caller
	if p := s.client.config.Patience; p > 0 {
		limited, cancel := context.WithTimeout(caller, p)
		defer cancel()
		ctx = limited
	}
	c := s.shortlist.newSearch(n)
	for {
		if s.closed.Load() {
			return none, firn.ErrClosed
		}
		if ctx.Err() != nil {
			return none, s.failure(caller.Err())
		}
		i := s.pick(ctx, &c)
		if i >= 0 {
			if b, err, done := s.attempt(ctx, &c, i); done {
				return b, err
			}
		} else if ctx.Err() == nil {
			return none, s.giveUp(&c)
		}
	}
}

// pick chooses a server for a call, and probes suspects beside it. If all are
// left out, it waits for one, unless another one has said that the request is
// wrong. It returns -1 if none will be available in time, or ctx is done.
func (s *SequencerOf[I]) pick(ctx context.Context, c *search) int {
	for {
		i, probes, wait := s.shortlist.pick(c)
		for _, j := range probes {
			s.probe(j)
		}
		if i >= 0 || wait == 0 || c.refusal != nil || time.Since(c.start)+wait > s.client.config.Patience {
			return i
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return -1
		}
	}
}

// attempt sends a request to server i and, if the answer takes long, to other
// servers beside it, one after the other. It returns the first answer; the
// other requests end, and their IDs are lost. If done is not set, all of them
// failed, and the call may try again.
//
// The caller does not use c while others do.
func (s *SequencerOf[I]) attempt(ctx context.Context, c *search, i int) (b firn.BatchOf[I], err error, done bool) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	c.count = min(c.count, int(s.most.Load()))
	c.done[i].pending = true
	var (
		other  firn.BatchOf[I]
		failed error
		found  bool
		crash  any // a panic of the caller's code
	)
	joined := make(chan struct{})
	timer := time.AfterFunc(s.hedgeAfter(ctx), func() {
		defer close(joined)
		defer func() { crash = recover() }()
		s.shortlist.late(i, start)
		for own.Err() == nil {
			j := s.pick(own, c)
			if j < 0 {
				return
			}
			if other, failed, found = s.attempt(own, c, j); found {
				cancel()
			}
		}
	})
	defer timer.Stop() // if the caller's code panics
	count, packed := c.count, s.packed.Load()
	b, err = s.request(own, &s.shortlist.servers[i], count, packed)
	gone := own.Err()
	if !timer.Stop() {
		if err == nil || isToken(err) {
			cancel()
		}
		<-joined
		if crash != nil {
			panic(crash)
		}
	}
	c.done[i].pending = false
	done = s.settle(gone, c, i, start, count, packed, b, err)
	switch {
	case !found:
		return b, err, done
	case done && err == nil:
		s.lost.Add(uint64(other.Len()))
		return b, nil, true
	}
	return other, failed, true
}

// hedgeAfter returns how long to wait for a server before another one is asked.
// It leaves half of the call's time for that one.
func (s *SequencerOf[I]) hedgeAfter(ctx context.Context) time.Duration {
	d := s.shortlist.hedgeAfter()
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/2)
	}
	return d
}

// settle records the result of a request, and reports whether it is that of the
// call. gone is the error of the call's context when the request ended.
func (s *SequencerOf[I]) settle(gone error, c *search, i int, start time.Time, count int, packed bool,
	b firn.BatchOf[I], err error) (done bool) {
	said, _ := errors.AsType[*Error](err)
	ofServer, retryAfter := true, time.Duration(0)
	switch {
	case err == nil:
		if s.shortlist.worked(i, start, c.probe) {
			s.client.config.Logger.Info("server answers again", "server", s.shortlist.servers[i].name, "sequencer", s.name)
		}
		s.record(nil)
		s.batches.Add(1)
		s.ids.Add(uint64(b.Len()))
		return true
	case said != nil && said.Kind == "no-runs" && !packed:
		s.packed.Store(true)
		return false
	case said != nil && said.Kind == "batch-too-large" && count > 1:
		s.most.Store(int64(count / 2))
		return false
	case isToken(err):
		return true
	case gone != nil: // the caller gave up, or has another answer
		s.failures.Add(1)
		s.shortlist.late(i, start)
		return false
	case said != nil:
		if !said.isTemporary() {
			c.done[i].refused = err
		}
		if said.ofRequest() {
			c.refusal = cmp.Or(c.refusal, said)
		}
		ofServer, retryAfter = said.ofServer(), said.RetryAfter
	case errors.As(err, new(*answerError)):
		// IDs of one sequencer may have the other width.
		c.done[i].refused = err
		ofServer = false
	case isUntrusted(err):
		c.done[i].refused = err
	case isTimeout(err):
		if c.timeouts++; c.timeouts >= len(c.done) {
			c.count = max(1, count/2) // perhaps it is too much for all of them
		}
		s.shortlist.late(i, start)
		if errors.Is(err, context.DeadlineExceeded) { // not that of the caller
			err = s.shortlist.noAnswer(i, start)
		}
	}
	s.record(err)
	s.failed(i, start, ofServer, retryAfter, err)
	c.done[i].tried = true
	if s.client.config.Patience < 0 {
		c.done[i].refused = err // once is enough
	}
	return false
}

// probe asks a suspect for one ID, which is lost, while calls use other
// servers.
func (s *SequencerOf[I]) probe(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return
	}
	s.probes.Go(func() {
		defer func() {
			if v := recover(); v != nil { // by the caller's code
				s.failed(i, time.Now(), true, 0, fmt.Errorf("client: %s: panic: %v", place(s.name, s.shortlist.servers[i].name), v))
			}
		}()
		start, packed, c := time.Now(), s.packed.Load(), s.shortlist.newSearch(1)
		c.probe = true
		b, err := s.request(s.ctx, &s.shortlist.servers[i], 1, packed)
		s.settle(s.ctx.Err(), &c, i, start, 1, packed, b, err)
		s.lost.Add(uint64(b.Len()))
	})
}

// giveUp returns the error of a call that no server will answer in time: that of
// the servers if all refuse for one reason, or if one of them says that the
// request is wrong.
func (s *SequencerOf[I]) giveUp(c *search) error {
	first, _ := errors.AsType[*Error](c.done[0].refused)
	for _, e := range c.done {
		said, _ := errors.AsType[*Error](e.refused)
		if first == nil || said == nil || said.isTemporary() || said.Kind != first.Kind || said.Status != first.Status {
			first = c.refusal
			break
		}
	}
	if first != nil {
		return first
	}
	return s.failure(nil)
}

// failure returns the error of a call without an answer, with the reasons. cause
// is the error of the caller's context; if that is nil, Config.Patience has
// passed, or no server will be available before.
func (s *SequencerOf[I]) failure(cause error) error {
	errs := s.shortlist.errors()
	switch {
	case len(errs) == 0 && cause != nil:
		return fmt.Errorf("client: %s: %w", quote(s.name), cause)
	case len(errs) == 0: // too early to say that a server has failed
		errs = append(errs, fmt.Errorf("no answer in time: %w", context.DeadlineExceeded))
	}
	return &giveUpError{s.name, cause, errs}
}

// failed records that a server has failed, and logs it if it answered before.
func (s *SequencerOf[I]) failed(i int, start time.Time, ofServer bool, retryAfter time.Duration, err error) {
	if s.shortlist.failed(i, start, ofServer, retryAfter, err) {
		s.client.config.Logger.Warn("server failed", "server", s.shortlist.servers[i].name, "sequencer", s.name, "error", err)
	}
}

// record records the result of the last request.
func (s *SequencerOf[I]) record(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
	if err != nil {
		s.failures.Add(1)
	}
}
