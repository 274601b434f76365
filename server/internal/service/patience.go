package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

const (
	// silentMost is how long a store may be silent before calls stop waiting for
	// it.
	silentMost = 5 * time.Second

	// lookEvery is how often waiting calls are checked.
	lookEvery = 100 * time.Millisecond

	// probeEvery is how often a silent store is asked whether it answers again,
	// and how long each probe may take.
	probeEvery = time.Second
)

// A silentError means that the store has not answered, or has refused calls,
// for so long that waiting is pointless. It matches sequencer.ErrUnavailable.
type silentError struct {
	silent time.Duration
	why    error // with which it refuses calls; nil if it does not answer
}

func (e *silentError) Error() string {
	if e.why != nil {
		return fmt.Sprintf("%v: it has refused calls for %v: %v", sequencer.ErrUnavailable, e.silent.Round(time.Second), e.why)
	}
	return fmt.Sprintf("%v: it has not answered for %v", sequencer.ErrUnavailable, e.silent.Round(time.Second))
}

func (e *silentError) Is(target error) bool { return target == sequencer.ErrUnavailable }

// A patience ends the waits of calls for a silent store: a client can then ask
// another server, and thousands of waiting calls do not pile up. Sequencers
// that hold a node ID keep trying to renew it. Its goroutine runs while calls
// wait or the store is silent. It must be made by newPatience, and ends with
// close.
type patience struct {
	store  grant.Store
	silent Silence         // nil if unknown: then calls wait
	ctx    context.Context // of the goroutine
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	waits    map[*waitingCall]struct{}
	watching bool
}

// A Silence returns how long a store has answered no read and no write, 0 if it
// answers, and the error with which it refuses them, nil if it is silent.
type Silence func() (reads, writes time.Duration, why error)

// A waitingCall waits for the store.
type waitingCall struct {
	need need
	stop context.CancelCauseFunc
}

// A need says what a call needs from the store. The zero value is that of a
// call that only reads.
type need struct {
	writes bool        // the call writes too
	over   func() bool // reports whether the call is useless without the store; nil: always
}

// vain returns an error if the store has been silent for so long that waiting is
// pointless, otherwise nil.
func (n need) vain(reads, writes time.Duration, why error) *silentError {
	silent := reads
	if n.writes {
		silent = max(silent, writes)
	}
	if silent < silentMost || n.over != nil && !n.over() {
		return nil
	}
	return &silentError{silent, why}
}

func newPatience(s grant.Store, silent Silence) *patience {
	p := &patience{store: s, silent: silent, waits: make(map[*waitingCall]struct{})}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends the goroutine. Waiting calls continue until their contexts are
// done.
func (p *patience) close() {
	p.end()
	p.ended.Wait()
}

// during makes a call that may wait for the store. If waiting is pointless, it
// ends the call, or does not start it, and returns a silentError.
func (p *patience) during(ctx context.Context, n need, call func(context.Context) error) error {
	if p.silent == nil {
		return call(ctx)
	}
	if silent := n.vain(p.silent()); silent != nil {
		p.watch(nil)
		return silent
	}
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &waitingCall{n, stop}
	p.watch(w)
	defer p.forget(w)
	err := call(limited)
	if e := (*silentError)(nil); err != nil && ctx.Err() == nil && errors.As(context.Cause(limited), &e) {
		return e
	}
	return err
}

// watch starts the goroutine, for a waiting call if w is not nil.
func (p *patience) watch(w *waitingCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w != nil {
		p.waits[w] = struct{}{}
	}
	if !p.watching && p.ctx.Err() == nil {
		p.watching = true
		p.ended.Go(p.run)
	}
}

func (p *patience) forget(w *waitingCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, w)
}

func (p *patience) run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	probes := make(chan struct{}, 1) // holds the probe under way
	var probed time.Time
	for {
		reads, writes, why := p.silent()
		if reads >= probeEvery && time.Since(probed) >= probeEvery {
			select {
			case probes <- struct{}{}:
				probed = time.Now()
				p.ended.Go(func() {
					p.probe()
					<-probes
				})
			default:
			}
		}
		p.mu.Lock()
		for w := range p.waits {
			if silent := w.need.vain(reads, writes, why); silent != nil {
				w.stop(silent)
				delete(p.waits, w)
			}
		}
		p.watching = p.ctx.Err() == nil && (reads >= probeEvery || len(p.waits) > 0)
		again := p.watching
		p.mu.Unlock()
		if !again {
			return
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
		}
	}
}

// probe reads from the store to find out whether it answers again.
func (p *patience) probe() {
	ctx, cancel := context.WithTimeout(p.ctx, probeEvery)
	defer cancel()
	_, _ = p.store.Get(ctx, readyKey)
}
