package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

const (
	// maxSilence is how long a store may be silent before calls stop waiting
	// for it.
	maxSilence = 5 * time.Second

	// lookEvery is how often waiting calls are checked.
	lookEvery = 100 * time.Millisecond

	// probeEvery is how often a silent store is asked whether it answers again,
	// and how long each probe may take.
	probeEvery = time.Second
)

// A silentError means that the store has not answered, or has refused calls,
// for so long that waiting is pointless. It matches firn.ErrUnavailable.
type silentError struct {
	silent time.Duration
	why    error // with which it refuses calls; nil if it does not answer
}

func (e *silentError) Error() string {
	text := fmt.Sprintf("%v: the store %s", firn.ErrUnavailable, e.describe())
	if e.why != nil {
		text += ": " + e.why.Error()
	}
	return text
}

// describe returns what the store does, without its own words, which may name
// hosts.
func (e *silentError) describe() string {
	if e.why != nil {
		return fmt.Sprintf("has refused calls for %v", e.silent.Round(time.Second))
	}
	return fmt.Sprintf("has not answered for %v", e.silent.Round(time.Second))
}

func (e *silentError) Is(target error) bool { return target == firn.ErrUnavailable }

// A silenceWatch ends the waits of calls for a silent store: a client can then
// ask another server, and thousands of waiting calls do not pile up. Sequencers
// that hold a node ID keep trying to renew it. It must be made by
// newSilenceWatch, and ends with close.
type silenceWatch struct {
	store  grant.Store
	silent Silence
	ctx    context.Context // of the probes
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex // guards probing
	probing bool
}

// A Silence returns how long a store has answered no read and no write, 0 if it
// answers, and the error with which it refuses them, nil if it is silent.
type Silence func() (reads, writes time.Duration, why error)

// A storeUse says what a call needs from the store. The zero value is that of a
// call that only reads.
type storeUse struct {
	writes bool        // the call writes too
	onlyIf func() bool // it needs the store only if this returns true; nil: in any case
}

// tooLong returns an error if the store has been silent for so long that
// waiting is pointless, otherwise nil. It has a silent store asked whether it
// answers again.
func (w *silenceWatch) tooLong(use storeUse) *silentError {
	silent, writes, why := w.silent()
	if silent >= probeEvery {
		w.probe()
	}
	if use.writes {
		silent = max(silent, writes)
	}
	if silent < maxSilence || use.onlyIf != nil && !use.onlyIf() {
		return nil
	}
	return &silentError{silent, why}
}

// newSilenceWatch makes a silenceWatch. silent is nil if it is unknown whether
// the store answers: then calls wait.
func newSilenceWatch(s grant.Store, silent Silence) *silenceWatch {
	if silent == nil {
		silent = func() (reads, writes time.Duration, why error) { return 0, 0, nil }
	}
	w := &silenceWatch{store: s, silent: silent}
	w.ctx, w.end = context.WithCancel(context.Background())
	return w
}

// close ends the probes. Waiting calls continue until their contexts are done.
func (w *silenceWatch) close() {
	w.mu.Lock()
	w.end() // no probe begins after that
	w.mu.Unlock()
	w.ended.Wait()
}

// whileAnswering makes a call that may wait for the store. If waiting is
// pointless, it ends the call, or does not start it, and returns a silentError.
func (w *silenceWatch) whileAnswering(ctx context.Context, use storeUse, call func(context.Context) error) error {
	if silent := w.tooLong(use); silent != nil {
		return silent
	}
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer w.endWhenSilent(limited, use, stop).Stop()
	err := call(limited)
	if e, ok := errors.AsType[*silentError](context.Cause(limited)); ok && err != nil && ctx.Err() == nil {
		return e
	}
	return err
}

// endWhenSilent checks every lookEvery whether the wait of a call is pointless,
// and then ends it.
func (w *silenceWatch) endWhenSilent(ctx context.Context, use storeUse, stop context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(lookEvery, func() {
		if ctx.Err() != nil {
			return
		}
		if silent := w.tooLong(use); silent != nil {
			stop(silent)
			return
		}
		w.endWhenSilent(ctx, use, stop)
	})
}

// probe reads from a silent store until it answers.
func (w *silenceWatch) probe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.probing || w.ctx.Err() != nil {
		return
	}
	w.probing = true
	w.ended.Go(func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for silent := true; silent && w.ctx.Err() == nil; {
			ctx, cancel := context.WithTimeout(w.ctx, probeEvery)
			_, _ = w.store.Get(ctx, readyKey)
			cancel()
			select {
			case <-tick.C:
			case <-w.ctx.Done():
			}
			reads, _, _ := w.silent()
			silent = reads >= probeEvery
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.probing = false
	})
}
