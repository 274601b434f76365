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
	text := fmt.Sprintf("%v: it %s", sequencer.ErrUnavailable, e.what())
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	return text
}

// what returns what the store does, without its own words, which may name hosts.
func (e *silentError) what() string {
	if e.why != nil {
		return fmt.Sprintf("has refused calls for %v", e.silent.Round(time.Second))
	}
	return fmt.Sprintf("has not answered for %v", e.silent.Round(time.Second))
}

func (e *silentError) Is(target error) bool { return target == sequencer.ErrUnavailable }

// A patience ends the waits of calls for a silent store: a client can then ask
// another server, and thousands of waiting calls do not pile up. Sequencers
// that hold a node ID keep trying to renew it. It must be made by newPatience,
// and ends with close.
type patience struct {
	store  grant.Store
	silent Silence         // nil if unknown: then calls wait
	ctx    context.Context // of the probes
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex // guards probing
	probing bool
}

// A Silence returns how long a store has answered no read and no write, 0 if it
// answers, and the error with which it refuses them, nil if it is silent.
type Silence func() (reads, writes time.Duration, why error)

// A need says what a call needs from the store. The zero value is that of a
// call that only reads.
type need struct {
	writes bool        // the call writes too
	over   func() bool // reports whether the call is useless without the store; nil: always
}

// vain returns an error if the store has been silent for so long that waiting is
// pointless, otherwise nil. It has a silent store asked whether it answers again.
func (p *patience) vain(n need) *silentError {
	if p.silent == nil {
		return nil
	}
	silent, writes, why := p.silent()
	if silent >= probeEvery {
		p.probe()
	}
	if n.writes {
		silent = max(silent, writes)
	}
	if silent < silentMost || n.over != nil && !n.over() {
		return nil
	}
	return &silentError{silent, why}
}

func newPatience(s grant.Store, silent Silence) *patience {
	p := &patience{store: s, silent: silent}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends the probes. Waiting calls continue until their contexts are done.
func (p *patience) close() {
	p.mu.Lock()
	p.end() // no probe begins after that
	p.mu.Unlock()
	p.ended.Wait()
}

// during makes a call that may wait for the store. If waiting is pointless, it
// ends the call, or does not start it, and returns a silentError.
func (p *patience) during(ctx context.Context, n need, call func(context.Context) error) error {
	if p.silent == nil {
		return call(ctx)
	}
	if silent := p.vain(n); silent != nil {
		return silent
	}
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer p.look(limited, n, stop).Stop()
	err := call(limited)
	if e := (*silentError)(nil); err != nil && ctx.Err() == nil && errors.As(context.Cause(limited), &e) {
		return e
	}
	return err
}

// look looks after a while, and again and again, whether the wait of a call is
// pointless, and then ends it.
func (p *patience) look(ctx context.Context, n need, stop context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(lookEvery, func() {
		if ctx.Err() != nil {
			return
		}
		if silent := p.vain(n); silent != nil {
			stop(silent)
			return
		}
		p.look(ctx, n, stop)
	})
}

// probe reads from a silent store until it answers.
func (p *patience) probe() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.probing || p.ctx.Err() != nil {
		return
	}
	p.probing = true
	p.ended.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for silent := true; silent && p.ctx.Err() == nil; {
			ctx, cancel := context.WithTimeout(p.ctx, probeEvery)
			_, _ = p.store.Get(ctx, readyKey)
			cancel()
			select {
			case <-tick.C:
			case <-p.ctx.Done():
			}
			reads, _, _ := p.silent()
			silent = reads >= probeEvery
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.probing = false
	})
}
