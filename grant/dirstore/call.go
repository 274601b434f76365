package dirstore

import (
	"context"
	"fmt"
	"time"

	"github.com/firnid/firn/grant"
)

// A disk may answer late or never, like a device that was suspended, and the
// system cannot interrupt a request to it. So if a call's context can end, a
// goroutine of the Store makes the call, and the caller leaves when the context
// is done. The goroutine stays blocked and keeps its locks, because its request
// to the disk may still be carried out. When the disk answers, it changes
// nothing more and ends, because its context is done.
const (
	// answerTime is how long the caller stays after its context is done: a
	// healthy disk answers in this time, and then the result is known.
	answerTime = 250 * time.Millisecond

	// maxAbandoned is how many calls may be abandoned to a disk that does not
	// answer, in addition to those in progress at that time. Each occupies a
	// thread of the process. Later calls fail at once.
	maxAbandoned = 8

	// closeSilence is how long Close waits for the disk.
	closeSilence = 10 * time.Second
)

// errClosed is the error of calls after Close, and of those that Close ends.
var errClosed = fmt.Errorf("%w: dirstore: the store is closed", grant.ErrNotSent)

// enter begins a call. Each success must be followed by one s.calls.Done.
func (s *store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return grant.NotSent(err)
	}
	if f := s.failed.Load(); f != nil {
		return grant.NotSent(*f)
	}
	if n := s.abandoned.Load(); n >= maxAbandoned {
		return grant.NotSent(fmt.Errorf("dirstore: the disk of %s does not answer: check the disk and its mount; this "+
			"call was not tried because %d others wait for the disk", s.path, n))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return errClosed
	}
	s.calls.Add(1)
	return nil
}

// do makes a call of the Store: it runs f, and abandons it if f does not return
// soon after the context is done. Then the result is unknown.
func do[T any](ctx context.Context, s *store, f func() (T, error)) (value T, err error) {
	if err := s.enter(ctx); err != nil {
		return value, err
	}
	if ctx.Done() == nil { // the wait has no end
		defer s.calls.Done()
		return f()
	}
	type result struct {
		value T
		err   error
	}
	results, abandoned, began := make(chan result), make(chan struct{}), time.Now()
	go func() {
		defer s.calls.Done()
		value, err := f()
		select {
		case results <- result{value, err}:
		case <-abandoned:
			s.abandoned.Add(-1)
		}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-results:
		return r.value, r.err
	case <-time.After(answerTime):
	}
	s.abandoned.Add(1)
	close(abandoned)
	return value, fmt.Errorf("dirstore: the disk of %s has not answered for %v: check the disk and its mount: %w",
		s.path, time.Since(began).Round(time.Second), ctx.Err())
}
