package dirstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

// A disk may answer late, or never: a volume of a network that is gone, a
// device that was suspended. The system cannot interrupt such a request, so a
// call whose context can end is made by a goroutine of the Store's own, and its
// caller leaves when the context is done. The goroutine stays where it is, and
// so do the locks that it has, because what it has asked of the disk may still
// be done. When the disk answers, it changes nothing more and ends, as its
// context is done.
//
// The Store goes on meanwhile: nothing that was left behind can be taken for
// done or for not done. A CAS that was left says whether its rename may have
// begun, and if it has, every other call for that record waits for the lock.
const (
	// answerTime is how long the caller stays after its context is done: a disk
	// that is well answers in this time, and then the result is known.
	answerTime = 250 * time.Millisecond

	// maxLeft is how many calls may be left at a disk that does not answer, beside
	// those that are under way by then. Each is a thread of the process. Calls
	// after that fail at once.
	maxLeft = 8
)

// errClosed is of calls after Close, and of those that Close ends.
var errClosed = fmt.Errorf("%w: dirstore: the store is closed", grant.ErrNotSent)

// errQuit is of a call whose disk ends the goroutine, as one of a test may.
var errQuit = errors.New("dirstore: the disk has ended the goroutine that called it")

// A call is one call of a method that uses the disk.
type call struct {
	state atomic.Uint32 // callOpen, and then one of the other two, for ever
}

const (
	callOpen     uint32 = iota
	callRenames         // the value of a CAS may be in its place
	callReturned        // the caller has left before that, and it never is
)

// renames reports whether a CAS may put its value in its place. From then on
// its result is unknown to a caller that leaves.
func (c *call) renames() bool {
	return c.state.CompareAndSwap(callOpen, callRenames) || c.state.Load() == callRenames
}

// leave reports whether a caller leaves before anything was changed.
func (c *call) leave() bool { return c.state.CompareAndSwap(callOpen, callReturned) }

// enter begins a call. Each that succeeds needs one s.calls.Done, and one of
// end.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return notSent(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if f := s.failed.Load(); f != nil {
		return notSent(f.err)
	}
	if s.left >= maxLeft {
		return notSent(fmt.Errorf("%w; this call was not tried, as %d others wait for it", s.silence(), s.left))
	}
	s.calls.Add(1)
	s.running++
	return nil
}

// end ends what enter has begun. The last call that Close did not wait for
// closes the disk. It is called under s.mu.
func (s *Store) end(wasLeft bool) {
	s.running--
	if wasLeft {
		s.left--
	}
	if s.orphaned && s.running == 0 {
		_ = s.disk.close() // it was read from, and written to with fsync
	}
}

// silence says since when the disk does not answer. It is called under s.mu.
func (s *Store) silence() error {
	return fmt.Errorf("dirstore: the disk of %s has not answered for %v: check the disk and its mount",
		s.path, time.Since(s.silent).Round(time.Second))
}

// do makes a call of the Store: it runs f, and leaves it behind if it does not
// return soon after the context is done.
func do[T any](ctx context.Context, s *Store, f func(*call) (T, error)) (value T, err error) {
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
		results = make(chan result, 1) // it gets one under s.mu
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
		run() // nothing ends the wait
	} else {
		go run()
	}
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
	}
	answers := time.NewTimer(answerTime)
	defer answers.Stop()
	select {
	case r := <-results:
		return r.value, r.err
	case <-answers.C:
	}
	unchanged := c.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case r := <-results: // just now
		return r.value, r.err
	default:
	}
	wasLeft = true
	if s.left++; s.left == 1 {
		s.silent = began
	}
	err = fmt.Errorf("%w: %w", s.silence(), ctx.Err())
	if unchanged {
		err = notSent(err)
	}
	return value, err
}
