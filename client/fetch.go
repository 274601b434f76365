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
type fetcher[I firn.AnyID] struct{ sequencer *SequencerOf[I] }

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
	c := s.view.newCallState(n)
	for {
		if s.closed.Load() {
			return none, firn.ErrClosed
		}
		if ctx.Err() != nil {
			return none, s.failure(caller.Err())
		}
		i := s.pickOrWait(ctx, &c)
		if i >= 0 {
			if b, done, err := s.requestHedged(ctx, &c, i); done {
				return b, err
			}
		} else if ctx.Err() == nil {
			return none, s.giveUp(&c)
		}
	}
}

// pickOrWait chooses a server for a call, and probes suspects beside it. If all
// are left out, it waits for one, unless another one has said that the request
// is wrong. It returns -1 if none will be available in time, or ctx is done.
func (s *SequencerOf[I]) pickOrWait(ctx context.Context, c *callState) int {
	for {
		i, probes, wait := s.view.pick(c)
		for _, j := range probes {
			s.startProbe(j)
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

// An attempt is a request to one server.
type attempt struct {
	server int // its index
	start  time.Time
	count  int  // of IDs
	packed bool // for packed IDs, not for runs
}

func (s *SequencerOf[I]) newAttempt(server, count int) attempt {
	return attempt{server, time.Now(), count, s.packed.Load()}
}

// requestHedged sends a request to server i and, if the answer takes long, to
// other servers beside it, one after the other. It returns the first answer;
// the other requests end, and their IDs are lost. If done is not set, all of
// them failed, and the call may try again.
//
// The caller does not use c while others do.
func (s *SequencerOf[I]) requestHedged(ctx context.Context, c *callState, i int,
) (b firn.BatchOf[I], done bool, err error) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	c.count = min(c.count, int(s.maxRequest.Load()))
	a := s.newAttempt(i, c.count)
	c.tries[i].pending = true
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
		s.view.suspectIfLate(i, a.start)
		for own.Err() == nil {
			j := s.pickOrWait(own, c)
			if j < 0 {
				return
			}
			if other, found, failed = s.requestHedged(own, c, j); found {
				cancel()
			}
		}
	})
	defer timer.Stop() // if the caller's code panics
	b, err = s.request(own, a)
	ctxErr := own.Err()
	if !timer.Stop() {
		if err == nil || isTokenError(err) {
			cancel()
		}
		<-joined
		if crash != nil {
			panic(crash)
		}
	}
	c.tries[i].pending = false
	done = s.recordResult(c, a, b, err, ctxErr)
	switch {
	case !found:
		return b, done, err
	case done && err == nil:
		s.lost.Add(uint64(other.Len()))
		return b, true, nil
	}
	return other, true, failed
}

// hedgeAfter returns how long to wait for a server before another one is asked.
// It leaves half of the call's time for that one.
func (s *SequencerOf[I]) hedgeAfter(ctx context.Context) time.Duration {
	s.view.mu.Lock()
	d := s.view.hedgeAfter()
	s.view.mu.Unlock()
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/2)
	}
	return d
}

// recordResult records the result of an attempt, and reports whether it is that
// of the call. ctxErr is the error of the call's context when the attempt
// ended.
func (s *SequencerOf[I]) recordResult(c *callState, a attempt, b firn.BatchOf[I], err, ctxErr error) (done bool) {
	i := a.server
	said, _ := errors.AsType[*Error](err)
	ofServer, retryAfter := true, time.Duration(0)
	switch {
	case err == nil:
		if s.view.recordAnswer(i, a.start, c.isProbe) {
			s.client.config.Logger.Info("server answers again", "server", s.view.servers[i].name, "sequencer", s.name)
		}
		s.recordOutcome(nil)
		s.batches.Add(1)
		s.ids.Add(uint64(b.Len()))
		return true
	case said != nil && said.Kind == "no-runs" && !a.packed:
		s.packed.Store(true)
		return false
	case said != nil && said.Kind == KindBatchTooLarge && a.count > 1:
		s.maxRequest.Store(int64(a.count / 2))
		return false
	case isTokenError(err):
		return true
	case ctxErr != nil: // the caller gave up, or has another answer
		s.failures.Add(1)
		s.view.suspectIfLate(i, a.start)
		return false
	case said != nil:
		if !said.isTemporary() {
			c.tries[i].refused = err
		}
		if said.ofRequest() {
			c.refusal = cmp.Or(c.refusal, said)
		}
		ofServer, retryAfter = said.ofServer(), said.RetryAfter
	case errors.As(err, new(*answerError)):
		// IDs of one sequencer may have the other width.
		c.tries[i].refused = err
		ofServer = false
	case isUntrusted(err):
		c.tries[i].refused = err
	case isTimeout(err):
		if c.timeouts++; c.timeouts >= len(c.tries) {
			c.count = max(1, a.count/2) // perhaps it is too much for all of them
		}
		s.view.suspectIfLate(i, a.start)
		if errors.Is(err, context.DeadlineExceeded) { // not that of the caller
			err = s.view.noAnswerError(i, a.start)
		}
	}
	s.recordOutcome(err)
	s.recordFailure(i, a.start, ofServer, retryAfter, err)
	c.tries[i].tried = true
	if s.client.config.Patience < 0 {
		c.tries[i].refused = err // once is enough
	}
	return false
}

// startProbe asks a suspect for one ID, which is lost, while calls use other
// servers.
func (s *SequencerOf[I]) startProbe(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return
	}
	s.probes.Go(func() {
		defer func() {
			if v := recover(); v != nil { // by the caller's code
				at := nameAt(s.name, s.view.servers[i].name)
				s.recordFailure(i, time.Now(), true, 0, fmt.Errorf("client: %s: panic: %v", at, v))
			}
		}()
		a, c := s.newAttempt(i, 1), s.view.newCallState(1)
		c.isProbe = true
		b, err := s.request(s.ctx, a)
		s.recordResult(&c, a, b, err, s.ctx.Err())
		s.lost.Add(uint64(b.Len()))
	})
}

// giveUp returns the error of a call that no server will answer in time: that
// of the servers if all refuse for one reason, or if one of them says that the
// request is wrong.
func (s *SequencerOf[I]) giveUp(c *callState) error {
	first, _ := errors.AsType[*Error](c.tries[0].refused)
	for _, e := range c.tries {
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

// errNoAnswer is the failure of a server that had little time.
var errNoAnswer = errors.New("no answer so far")

// failure returns the error of a call without an answer, with the reasons.
// cause is the error of the caller's context; if that is nil, Config.Patience
// has passed, or no server will be available before.
func (s *SequencerOf[I]) failure(cause error) error {
	errs := s.view.lastErrors()
	switch { // if it is too early to say that a server has failed
	case len(errs) == 0 && cause == context.Canceled: // that is no outage
		return fmt.Errorf("client: %s: %w: %w", quote(s.name), cause, errNoAnswer)
	case len(errs) == 0 && cause != nil:
		errs = append(errs, errNoAnswer)
	case len(errs) == 0:
		errs = append(errs, fmt.Errorf("%w: %w", errNoAnswer, context.DeadlineExceeded))
	}
	return &giveUpError{s.name, cause, errs}
}

// recordFailure records that a server has failed, and logs it if it answered
// before.
func (s *SequencerOf[I]) recordFailure(i int, start time.Time, ofServer bool, retryAfter time.Duration, err error) {
	if s.view.recordFailure(i, start, ofServer, retryAfter, err) {
		s.client.config.Logger.Warn("server failed", "server", s.view.servers[i].name, "sequencer", s.name, "error", err)
	}
}

// recordOutcome records the error of the last request, or that it had none.
func (s *SequencerOf[I]) recordOutcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastErr = err
	if err != nil {
		s.failures.Add(1)
	}
}
