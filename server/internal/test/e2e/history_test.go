//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/stores"
)

// A history is what some clients have requested of keys, and the answers.
type history struct {
	t     *testing.T
	url   string
	stop  context.CancelFunc
	all   sync.WaitGroup
	begin time.Time
	calls atomic.Uint64

	mu     sync.Mutex                       // guards what follows
	ops    map[string][]porcupine.Operation // by key
	counts map[string]int
}

type call struct {
	cas       bool
	old, next string
}

type answer struct {
	value string // of a get
	ok    bool   // of a CAS
	known bool
}

const forever = int64(1) << 62

const (
	// keysAtOnce are used at a time, so that clients get in each other's way.
	keysAtOnce = 3

	// callsOfKeys is how many calls there are of these: long histories are hard to
	// check.
	callsOfKeys = 80 * keysAtOnce
)

// newHistory has clients ask until check.
func newHistory(t *testing.T, url string) *history {
	ctx, stop := context.WithCancel(context.Background())
	h := &history{t: t, url: url, stop: stop, begin: time.Now(), ops: make(map[string][]porcupine.Operation), counts: make(map[string]int)}
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
				if _, ok := seen[key]; !ok || r.IntN(2) == 0 {
					if got := h.ask(ctx, s, key, call{}); got.known {
						seen[key] = got.value
					}
				} else {
					in := call{cas: true, old: seen[key], next: fmt.Sprintf("%d-%d", id, n)}
					if got := h.ask(ctx, s, key, in); got.known && got.ok {
						seen[key] = in.next
					}
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
func (h *history) open(ctx context.Context) grant.Store {
	for ctx.Err() == nil {
		if s, err := stores.Open(ctx, h.url, stores.Options{}); err == nil {
			return s
		}
	}
	return nil
}

// ask sends one request and records the answer.
func (h *history) ask(ctx context.Context, s grant.Store, key string, in call) answer {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	begin := time.Since(h.begin).Nanoseconds()
	var out answer
	var err error
	if in.cas {
		out.ok, err = s.CAS(within, key, []byte(in.old), []byte(in.next))
	} else {
		var v []byte
		v, err = s.Get(within, key)
		out.value = string(v)
	}
	end := time.Since(h.begin).Nanoseconds()
	out.known = err == nil
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !in.cas && err != nil:
		h.counts["failed"]++
		return out // it was no more than a question
	case errors.Is(err, grant.ErrNotSent):
		// It must never be applied. So it is left out, and a Get that sees it has
		// read a value that no client wrote.
		h.counts["not sent"]++
		return out
	case err != nil:
		h.counts["unknown"]++
		end = forever
	case !in.cas:
		h.counts["read"]++
	case out.ok:
		h.counts["applied"]++
	default:
		h.counts["refused"]++
	}
	// Clients of porcupine do one thing at a time; one that gave up does more.
	h.ops[key] = append(h.ops[key], porcupine.Operation{ClientId: len(h.ops[key]), Input: in, Call: begin, Output: out, Return: end})
	return out
}

// happened reports whether every kind of answer was given.
func (h *history) happened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts["applied"] > 0 && h.counts["refused"] > 0 && h.counts["unknown"] > 0
}

// register is one key. A CAS whose result is unknown may be applied at any
// later moment, or never: never is when its old value is there no more.
var register = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		now, in, out := state.(string), input.(call), output.(answer)
		switch {
		case !in.cas:
			return out.value == now, now
		case !out.known && in.old == now:
			return true, in.next
		case !out.known:
			return true, now
		case out.ok:
			return in.old == now, in.next
		}
		return in.old != now, now
	},
	Equal: func(a, b any) bool { return a == b },
}

// check ends the clients, reads every key a last time, so that no acknowledged
// write may be missing, and checks that all answers are those of one register
// per key.
func (h *history) check(store string) {
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
		until(h.t, "read "+key, func() bool { return h.ask(ctx, s, key, call{}).known })
	}
	operations := 0
	for key, ops := range h.ops {
		operations += len(ops)
		switch porcupine.CheckOperationsTimeout(register, ops, nettest.Patience) {
		case porcupine.Illegal:
			h.t.Errorf("the history of key %s is not linearizable: %v", key, ops)
		case porcupine.Unknown:
			h.t.Errorf("the history of key %s, of %d calls, is not decided within %v", key, len(ops), nettest.Patience)
		}
	}
	h.t.Logf("report: %s under chaos: %d calls of 4 clients on %d keys are linearizable (porcupine): %d read, %d CAS applied, %d refused, %d unknown; besides %d CAS certainly not sent, %d reads failed",
		store, operations, len(h.ops), h.counts["read"], h.counts["applied"], h.counts["refused"], h.counts["unknown"], h.counts["not sent"], h.counts["failed"])
	if !h.happened() {
		h.t.Errorf("too little happened: %v", h.counts)
	}
}
