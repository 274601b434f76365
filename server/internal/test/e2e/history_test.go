//go:build unix

package e2e

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/stores"
)

// A recorder has what some clients have requested of keys, and the answers.
type recorder struct {
	t     *testing.T
	url   string
	stop  context.CancelFunc
	all   sync.WaitGroup
	begin time.Time
	calls atomic.Uint64

	mu     sync.Mutex                     // guards what follows
	ops    map[string][]history.Operation // by key
	losses []int64                        // when the store may have lost what it had shown
	counts map[string]int
}

const (
	// keysAtOnce are used at a time, so that clients get in each other's way.
	keysAtOnce = 3

	// callsOfKeys is how many calls there are of these. One more reads the last
	// value.
	callsOfKeys = history.Max - 1
)

// newRecorder has clients ask until check.
func newRecorder(t *testing.T, url string) *recorder {
	ctx, stop := context.WithCancel(context.Background())
	h := &recorder{t: t, url: url, stop: stop, begin: time.Now(), ops: make(map[string][]history.Operation), counts: make(map[string]int)}
	t.Cleanup(func() { stop(); h.all.Wait() })
	for id := range 4 {
		h.all.Go(func() {
			s := h.open(ctx)
			if s == nil {
				return
			}
			defer s.Close()
			r := rand.New(rand.NewPCG(uint64(id), 7))
			seen := make(map[string]string) // what this client takes for the values
			for ctx.Err() == nil {
				n := h.calls.Add(1)
				key := fmt.Sprintf("k%d", n/callsOfKeys*keysAtOnce+uint64(r.IntN(keysAtOnce)))
				old, ok := seen[key]
				op := history.Operation{By: fmt.Sprint("client ", id)}
				if ok && r.IntN(2) == 0 {
					op.Kind, op.Old, op.Next = history.CAS, old, fmt.Sprintf("%d-%d", id, n)
				}
				if value, known := h.ask(ctx, s, key, op); known {
					seen[key] = value
				}
				if len(seen) > keysAtOnce {
					clear(seen)
				}
				time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond) // leaves the processor to others
			}
		})
	}
	return h
}

// open is a store, or nil if ctx is done before there is one.
func (h *recorder) open(ctx context.Context) grant.Store {
	for ctx.Err() == nil {
		if s, err := stores.Open(ctx, h.url); err == nil {
			return s
		}
	}
	return nil
}

// ask sends one request and records the answer. It returns the value of the key
// afterwards, if that is known.
func (h *recorder) ask(ctx context.Context, s grant.Store, key string, op history.Operation) (value string, known bool) {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	op.From = time.Since(h.begin).Nanoseconds()
	var applied bool
	var err error
	if op.Kind == history.CAS {
		applied, err = s.CAS(within, key, []byte(op.Old), []byte(op.Next))
	} else {
		var got []byte
		got, err = s.Get(within, key)
		op.Got = string(got)
	}
	op.To = time.Since(h.begin).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch op.Outcome = history.OutcomeOf(applied, err); {
	case op.Kind == history.Get && err != nil:
		h.counts["failed"]++
		return "", false // it was no more than a question
	case op.Kind == history.Get:
		h.counts["read"]++
		value, known = op.Got, true
	default:
		h.counts[op.Outcome.String()]++
		value, known = op.Next, op.Outcome == history.Applied
	}
	if op.Outcome == history.NotSent {
		// It must never be applied. So it is left out, and a Get that sees it
		// has read a value that no client wrote.
		return "", false
	}
	h.ops[key] = append(h.ops[key], op)
	return value, known
}

// count returns how often an answer was given.
func (h *recorder) count(answer string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[answer]
}

// loses notes that the store may have lost, just now, values that it had shown.
func (h *recorder) loses() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.losses = append(h.losses, time.Since(h.begin).Nanoseconds())
}

// withoutLost leaves out the answers that may rest on a value that was shown
// and then lost: reads and refusals before a loss, while a write was under way
// whose result its caller never learned. The protocol allows them. All other
// answers bind, and above all the applied writes.
func withoutLost(ops []history.Operation, losses []int64) []history.Operation {
	begin := int64(0)
	for _, loss := range losses {
		shown := int64(math.MaxInt64) // the first moment when such a value can have been shown
		for _, op := range ops {
			if op.Kind == history.CAS && op.Outcome == history.Unknown && begin <= op.From && op.From < loss {
				shown = min(shown, op.From)
			}
		}
		ops = slices.DeleteFunc(slices.Clone(ops), func(op history.Operation) bool {
			answer := op.Kind == history.Get || op.Outcome == history.Refused
			return answer && shown < op.To && op.From < loss
		})
		begin = loss
	}
	return ops
}

// TestWithoutLost: a refusal and a read of a value that a killed server lost
// are allowed, as are no others, and no applied write may be lost.
func TestWithoutLost(t *testing.T) {
	get := func(at int64, got string) history.Operation {
		return history.Operation{Kind: history.Get, Got: got, From: at, To: at + 1}
	}
	cas := func(at int64, old, next string, outcome history.Outcome) history.Operation {
		return history.Operation{Kind: history.CAS, Old: old, Next: next, Outcome: outcome, From: at, To: at + 1}
	}
	const loss = 50
	unknown := history.Operation{Kind: history.CAS, Old: "a", Next: "b", Outcome: history.Unknown, From: 20, To: 60}
	for name, tt := range map[string]struct {
		ops  []history.Operation
		want bool
	}{
		"a lost value was read":             {[]history.Operation{unknown, get(30, "b"), get(70, "a")}, true},
		"a lost value refused":              {[]history.Operation{unknown, cas(30, "a", "c", history.Refused), get(70, "a")}, true},
		"it was read before it was written": {[]history.Operation{get(10, "b"), unknown, get(70, "a")}, false},
		"it was read after the loss":        {[]history.Operation{unknown, get(70, "b"), get(80, "a")}, false},
		"nothing was under way":             {[]history.Operation{cas(20, "a", "b", history.Refused), get(70, "a")}, false},
		"an applied write was lost":         {[]history.Operation{unknown, cas(30, "b", "c", history.Applied), get(70, "a")}, false},
	} {
		if got := history.Linearizable("a", withoutLost(tt.ops, []int64{loss})); got != tt.want {
			t.Errorf("%s: allowed %t, want %t", name, got, tt.want)
		}
	}
}

// happened reports whether every kind of answer was given.
func (h *recorder) happened() bool {
	return h.count("applied") > 0 && h.count("refused") > 0 && h.count("unknown") > 0
}

// check ends the clients, reads every key a last time, so that no acknowledged
// write may be missing, and checks that all answers are those of one register
// per key.
func (h *recorder) check(store string) {
	h.t.Helper()
	h.stop()
	h.all.Wait()
	ctx := h.t.Context()
	s := h.open(ctx)
	if s == nil {
		return
	}
	defer s.Close()
	for key := range h.ops {
		must.Await(h.t, func() bool {
			_, known := h.ask(ctx, s, key, history.Operation{By: "the last"})
			return known
		}, "read %s", key)
	}
	operations := 0
	for key, ops := range h.ops {
		operations += len(ops)
		if !history.Linearizable("", withoutLost(ops, h.losses)) {
			h.t.Errorf("the history of key %s is not linearizable: it %s", key, history.Format("", ops))
		}
	}
	h.t.Logf("report: %s under chaos: %d calls of 4 clients on %d keys are linearizable: %d read, %d CAS applied, %d refused, %d unknown; besides %d CAS certainly not sent, %d reads failed",
		store, operations, len(h.ops), h.counts["read"], h.counts["applied"], h.counts["refused"], h.counts["unknown"], h.counts["not sent"], h.counts["failed"])
	if !h.happened() {
		h.t.Errorf("too little happened: %v", h.counts)
	}
}
