package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
)

// recurring is how many different values the histories have in which values
// recur.
const recurring = 3

// testHistories runs a few goroutines that read and write a key, by two stores
// over the same data if possible, and checks whether their results are
// consistent with one register.
func testHistories(t *testing.T, su suite) {
	s := su.new(t)
	stores := []*subject{s}
	if su.reopen != nil {
		stores = append(stores, su.again(t, s))
	}
	const (
		workers = 4
		calls   = 8     // of each worker
		most    = 20000 // histories
		lasts   = time.Second
	)
	var (
		rng     = rand.New(rand.NewPCG(1, 2))
		moment  atomic.Int64
		rounds  int
		counts  [history.Unknown + 1]int
		key     string
		unknown = true
	)
	for begin := time.Now(); rounds < most && time.Since(begin) < lasts && !t.Failed(); rounds++ {
		// Sometimes use a new key, so that creating is covered too; and always
		// after an unknown CAS, which may take effect later.
		if unknown || rng.IntN(4) == 0 {
			key = fmt.Sprintf("history/%d", rounds)
		}
		value := must.Get(s.Get(s.ctx, key))(t)
		// With few values they recur, with many each occurs only once.
		values := recurring
		if rounds%2 == 0 {
			values = 1 << 30
		}
		var all [workers][]history.Operation
		var wg sync.WaitGroup
		for w := range workers {
			seed := rng.Uint64()
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 0))
				r := recorder{stores[w%len(stores)], &moment, fmt.Sprintf("worker %d", w), rng, key, values}
				all[w] = r.record(string(value), calls)
			})
		}
		wg.Wait()
		ops := slices.Concat(all[:]...)
		unknown = false
		for _, op := range ops {
			if op.Kind == history.CAS {
				counts[op.Outcome]++
				unknown = unknown || op.Outcome == history.Unknown
			}
		}
		if !history.Linearizable(string(value), ops) {
			t.Errorf("no order of these calls explains their answers, key %q, which %s", key, history.Format(string(value), ops))
		}
	}
	if !t.Failed() {
		t.Logf("report: %d histories are linearizable: %d CAS applied, %d refused, %d unknown",
			rounds, counts[history.Applied], counts[history.Refused], counts[history.Unknown])
	}
}

// A recorder calls a store and records the results.
type recorder struct {
	*subject
	moment *atomic.Int64 // of all
	by     string
	rng    *rand.Rand
	key    string
	values int // how many different ones it writes
}

// record makes calls, and returns those that are part of the history. last is
// what it believes to be stored.
func (r *recorder) record(last string, calls int) (ops []history.Operation) {
	for range calls {
		op := history.Operation{Kind: history.CAS, By: r.by, Old: last, Next: fmt.Sprintf("v%d", r.rng.IntN(r.values))}
		switch r.rng.IntN(10) {
		case 0, 1, 2:
			op.Kind = history.Get
		case 3:
			op.Old = ""
		case 4:
			op.Old = fmt.Sprintf("v%d", r.rng.IntN(min(r.values, recurring)))
		}
		ctx, cancel := r.ctx, context.CancelFunc(func() {})
		if r.rng.IntN(4) == 0 { // it ends before, during or after a call of any store
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.rng.Int64N(int64(time.Microsecond)<<r.rng.IntN(13))))
		}
		var value []byte
		var ok bool
		var err error
		began := time.Now()
		op.From = r.moment.Add(1)
		if r.rng.IntN(2) == 0 {
			runtime.Gosched() // otherwise a fast store is done before another worker begins
		}
		if op.Kind == history.Get {
			value, err = r.Get(ctx, r.key)
			op.Got = string(value)
		} else {
			ok, err = r.CAS(ctx, r.key, []byte(op.Old), []byte(op.Next))
		}
		op.To = r.moment.Add(1)
		cancel()
		switch {
		case err != nil && ok,
			// If values recur, a store that decides by the stored bytes cannot
			// always know whether a refused write was applied.
			err != nil && ctx == r.ctx && (r.values > recurring || op.Kind == history.Get || errors.Is(err, grant.ErrNotSent)):
			r.t.Errorf("%v: %v, %v", op, ok, err)
		case ctx != r.ctx && time.Since(began) > soon:
			r.t.Errorf("%v took %v, though its context was done", op, time.Since(began))
		}
		op.Outcome = history.OutcomeOf(ok, err)
		switch {
		case op.Outcome == history.NotSent, err != nil && op.Kind == history.Get:
			continue // it changes nothing, and says nothing
		case op.Kind == history.Get:
			last = op.Got
		case op.Outcome == history.Applied:
			last = op.Next
		}
		ops = append(ops, op)
	}
	return ops
}
