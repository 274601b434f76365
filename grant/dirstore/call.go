package dirstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// A disk may answer late or never: a network volume that has disappeared, a
// device that was suspended. The system cannot interrupt such a request. So if
// a call's context can end, a goroutine of the Store makes the call, and the
// caller leaves when the context is done. The goroutine stays blocked and keeps
// its locks, because its request to the disk may still be carried out. When the
// disk answers, it changes nothing more and ends, because its context is done.
//
// The Store keeps working in the meantime: an abandoned operation counts
// neither as done nor as not done. The result of an abandoned CAS shows whether
// its rename may have begun. If it has, every other call for that record waits
// for the lock.
const (
	// answerTime is how long the caller stays after its context is done: a
	// healthy disk answers in this time, and then the result is known.
	answerTime = 250 * time.Millisecond

	// maxAbandoned is how many calls may be abandoned to a disk that does not
	// answer, in addition to those in progress at that time. Each occupies a
	// thread of the process. Later calls fail at once.
	maxAbandoned = 8

	// closeSilence is how long the disk may not answer before Close gives up.
	closeSilence = 10 * time.Second
)

// errClosed is the error of calls after Close, and of those that Close ends.
var errClosed = fmt.Errorf("%w: dirstore: the store is closed", grant.ErrNotSent)

// errQuit is the error of a call whose disk ended the goroutine, as a disk in a
// test may.
var errQuit = errors.New("dirstore: the disk ended the goroutine that called it (runtime.Goexit)")

// A call is one call of a method that uses the disk.
type call struct {
	state atomic.Uint32 // callOpen, and then permanently one of the other two
}

const (
	callOpen     uint32 = iota
	callRenames         // the value of a CAS may be in place
	callReturned        // the caller has left before that, and it never will be
)

// renames reports whether a CAS may put its value in place. From then on its
// result is unknown if the caller leaves.
func (c *call) renames() bool {
	return c.state.CompareAndSwap(callOpen, callRenames) || c.state.Load() == callRenames
}

// leave reports whether a caller leaves before anything has changed.
func (c *call) leave() bool { return c.state.CompareAndSwap(callOpen, callReturned) }

// enter begins a call. Each success must be followed by one s.calls.Done and
// one s.end.
func (s *store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return notSent(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if f := s.failed.Load(); f != nil {
		return notSent(*f)
	}
	if s.abandoned >= maxAbandoned {
		return notSent(fmt.Errorf("%w; this call was not tried because %d others wait for the disk", s.silence(), s.abandoned))
	}
	s.calls.Add(1)
	s.running++
	return nil
}

// end ends what enter has begun. The last call that Close did not wait for
// closes the disk. The caller holds s.mu.
func (s *store) end(wasLeft bool) {
	s.running--
	if wasLeft {
		s.abandoned--
	}
	if s.running > 0 {
		return
	}
	if s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	if s.orphaned {
		_ = s.disk.close() // reads need no check, and writes were synced
	}
}

// silence returns an error with the time since the disk last answered. The
// caller holds s.mu.
func (s *store) silence() error {
	return fmt.Errorf("dirstore: the disk of %s has not answered for %v: check the disk and its mount",
		s.path, time.Since(s.silent).Round(time.Second))
}

// do makes a call of the Store: it runs f, and abandons it if f does not return
// soon after the context is done.
func do[T any](ctx context.Context, s *store, f func(*call) (T, error)) (value T, err error) {
	if err := s.enter(ctx); err != nil {
		return value, err
	}
	defer s.calls.Done()
	type result struct {
		value T
		err   error
	}
	var (
		c       call
		wasLeft bool                   // guarded by s.mu
		results = make(chan result, 1) // receives a result under s.mu
		began   = time.Now()
	)
	run := func() {
		r := result{err: errQuit}
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end(wasLeft)
			results <- r
		}()
		r.value, r.err = f(&c)
	}
	if ctx.Done() == nil {
		run() // the wait has no end
	} else {
		go run()
	}
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
	unchanged := c.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case r := <-results: // it has just arrived
		return r.value, r.err
	default:
	}
	wasLeft = true
	if s.abandoned++; s.abandoned == 1 {
		s.silent = began
	}
	err = fmt.Errorf("%w: %w", s.silence(), ctx.Err())
	if unchanged {
		err = notSent(err)
	}
	return value, err
}
