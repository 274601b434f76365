package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/history"
)

// testHistories runs a few goroutines that read and write a few keys, and
// checks whether their results are consistent with one register per key.
func testHistories(t *testing.T, su suite) {
	s := su.new(t)
	const (
		workers = 4
		keys    = 2
		times   = history.Max / workers / 2 // calls per worker: no key can have too many
		most    = 20000                     // histories
	)
	var (
		r         = recorder{store: s.Store}
		rng       = rand.New(rand.NewPCG(1, 2))
		names     [keys]string
		renamed   int
		histories int
	)
	begin := time.Now()
	for round := 0; histories < most && time.Since(begin) < su.time && !t.Failed(); round++ {
		var initial [keys]string
		for k := range names {
			// Sometimes use a new key, so that creating is covered too; and
			// always after an unknown CAS, which may take effect later.
			if round == 0 || r.tainted[names[k]] || rng.IntN(4) == 0 {
				names[k] = fmt.Sprintf("history/%d/%d", k, renamed)
				renamed++
			}
			value, err := s.Get(s.ctx, names[k])
			if err != nil {
				t.Fatalf("Get(%q) = %v", names[k], err)
			}
			initial[k] = string(value)
		}
		r.begin()
		// With few values they recur, with many each occurs only once.
		values := 3
		if round%2 == 0 {
			values = 1 << 30
		}
		var wg sync.WaitGroup
		for w := range workers {
			seed := rng.Uint64()
			wg.Go(func() {
				r.work(t, s.ctx, fmt.Sprintf("worker %d", w), rand.New(rand.NewPCG(seed, 0)), names[:], initial[:], times, values)
			})
		}
		wg.Wait()
		for k, name := range names {
			ops := r.history[name]
			histories++
			if !history.Linearizable(initial[k], ops) {
				t.Errorf("no order of these calls explains their answers, key %q, which %s", name, history.Format(initial[k], ops))
			}
		}
	}
	if !t.Failed() {
		t.Logf("report: %d histories of %d calls are linearizable: %d CAS applied, %d refused, %d not sent, %d unknown",
			histories, r.calls.Load(), r.outcomes[history.Applied].Load(), r.outcomes[history.Refused].Load(), r.notSent.Load(), r.outcomes[history.Unknown].Load())
	}
}

// A recorder calls a store from several goroutines and records the results.
type recorder struct {
	store    grant.Store
	moment   atomic.Int64
	calls    atomic.Int64
	notSent  atomic.Int64
	outcomes [history.Unknown + 1]atomic.Int64

	mu      sync.Mutex
	history map[string][]history.Operation
	tainted map[string]bool // keys with an unknown CAS
}

// begin discards the recorded operations.
func (r *recorder) begin() {
	r.history = make(map[string][]history.Operation)
	r.tainted = make(map[string]bool)
}

func (r *recorder) add(key string, op history.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history[key] = append(r.history[key], op)
	if op.Kind == history.CAS && op.Outcome == history.Unknown {
		r.tainted[key] = true
	}
}

func (r *recorder) work(t *testing.T, ctx context.Context, by string, rng *rand.Rand, keys, initial []string, times, values int) {
	last := make([]string, len(keys)) // what the worker believes to be stored
	copy(last, initial)
	for range times {
		k := rng.IntN(len(keys))
		op := history.Operation{Kind: history.CAS, By: by, Old: last[k], Next: fmt.Sprintf("v%d", rng.IntN(values))}
		switch rng.IntN(10) {
		case 0, 1, 2:
			op.Kind = history.Get
		case 3:
			op.Old = ""
		case 4:
			op.Old = fmt.Sprintf("v%d", rng.IntN(min(values, 3)))
		}
		call, cancel := ctx, context.CancelFunc(func() {})
		if rng.IntN(4) == 0 { // it ends before, during or after a call of any store
			call, cancel = context.WithTimeout(ctx, time.Duration(rng.Int64N(int64(time.Microsecond)<<rng.IntN(13))))
		}
		r.calls.Add(1)
		began := time.Now()
		op.From = r.moment.Add(1)
		if rng.IntN(2) == 0 {
			runtime.Gosched() // otherwise a fast store is done before another worker begins
		}
		if op.Kind == history.Get {
			value, err := r.store.Get(call, keys[k])
			op.To = r.moment.Add(1)
			if err == nil {
				op.Got = string(value)
				last[k] = op.Got
				r.add(keys[k], op)
			} else if call == ctx {
				t.Errorf("Get(%q) = %v", keys[k], err)
			}
		} else {
			ok, err := r.store.CAS(call, keys[k], valueOf(op.Old), []byte(op.Next))
			op.To = r.moment.Add(1)
			switch {
			case ok && err == nil:
				op.Outcome = history.Applied
				last[k] = op.Next
			case err == nil:
				op.Outcome = history.Refused
			default:
				op.Outcome = history.Unknown
				if call == ctx || ok {
					t.Errorf("CAS(%q) = %v, %v", keys[k], ok, err)
				}
			}
			if errors.Is(err, grant.ErrNotSent) {
				r.notSent.Add(1) // it is not part of the history
			} else {
				r.outcomes[op.Outcome].Add(1)
				r.add(keys[k], op)
			}
		}
		if took := time.Since(began); call != ctx && took > soon {
			t.Errorf("%v took %v, though its context was done", op, took)
		}
		cancel()
	}
}
