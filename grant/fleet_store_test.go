package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A perSecond is the load of the store in a second.
type perSecond struct{ reads, writes int }

// A fleetStore is the simulated store. Times are in virtual microseconds.
type fleetStore struct {
	config  []byte
	records [][]byte // by node ID
	marks   []mark   // likewise
	busy    int64    // busy with earlier requests until then
	down    bool
	seconds []perSecond
}

// A mark is the oracles' knowledge of a record.
type mark struct {
	owner string
	until int64 // ms
	taken int64 // ms, exclusive end of all IDs made with this node ID
	spans []*fleetSpan
}

// A fleetSpan is what a process has made in one term, in ms, from lo on and below
// hi.
type fleetSpan struct{ lo, hi int64 }

var errRefused = fmt.Errorf("%w: fleet: the store is away", ErrNotSent)

// numberOf returns the node ID of a key, or -1.
func (w *fleetWorld) numberOf(key string) int {
	digits, ok := strings.CutPrefix(key, w.prefix)
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n >= len(w.store.records) {
		w.Fail("a request of key %q", key)
		return -1
	}
	return n
}

// request asks the store, and calls answer with the result, once: with
// context.DeadlineExceeded at the deadline if that is earlier.
func (w *fleetWorld) request(p *fleetProcess, a action, lineage bool, deadline int64, answer func(event)) {
	sent := w.Now
	w.At(w.Now+w.way(), func() {
		s := &w.store
		if s.down {
			w.step.Missed++
			if w.plan.Store.Silent {
				w.At(deadline, func() { answer(event{Err: context.DeadlineExceeded}) })
				return
			}
			w.At(min(deadline, w.Now+w.way()), func() { answer(event{Err: errRefused}) })
			return
		}
		turn := max(s.busy, w.Now)
		w.step.Queue = max(w.step.Queue, time.Duration(turn-w.Now)*time.Microsecond)
		if turn >= deadline && !w.plan.Store.Stubborn {
			w.step.Late++
			w.At(deadline, func() { answer(event{Err: context.DeadlineExceeded}) })
			return
		}
		var e event
		kind, keys := readLineage, 0
		if !lineage {
			e, kind, keys = w.execute(p, a)
		}
		cost := w.plan.Store.Read
		if kind.IsWrite() {
			cost = w.plan.Store.Write
		}
		cost += time.Duration(keys) * w.plan.Store.Key
		w.count(kind, keys)
		s.busy = turn + cost.Microseconds()
		back := s.busy + w.way()
		if back >= deadline {
			w.step.Late++
			w.At(max(deadline, sent), func() { answer(event{Err: context.DeadlineExceeded}) })
			return
		}
		w.At(back, func() { answer(e) })
	})
}

// way returns how long a request or an answer takes.
func (w *fleetWorld) way() int64 {
	most := w.plan.Store.Way.Microseconds()
	return most/2 + w.Rand.Int64N(most+1)
}

func (w *fleetWorld) count(k fleetKind, keys int) {
	w.step.Count[k]++
	w.step.Keys += keys
	second := int(w.Now / 1e6)
	for len(w.store.seconds) <= second {
		w.store.seconds = append(w.store.seconds, perSecond{})
	}
	if k.IsWrite() {
		w.store.seconds[second].writes++
	} else {
		w.store.seconds[second].reads++
	}
}

// execute handles a request at the store, at this moment.
func (w *fleetWorld) execute(p *fleetProcess, a action) (e event, k fleetKind, keys int) {
	s := &w.store
	get := func(key string) []byte {
		if n := w.numberOf(key); n >= 0 {
			return s.records[n]
		}
		return s.config
	}
	switch a.Kind {
	case actionGet:
		e.Values = [][]byte{get(a.Key)}
		if a.Key == w.configKey {
			return e, readConfig, 1
		}
		return e, readOne, 1
	case actionGetMany:
		e.Keys = a.Keys
		for _, key := range a.Keys {
			e.Values = append(e.Values, get(key))
		}
		return e, readSome, len(a.Keys)
	case actionList:
		for n, value := range s.records {
			if value != nil {
				e.Keys = append(e.Keys, w.keys[n])
				e.Values = append(e.Values, value)
			}
		}
		return e, readAll, len(e.Keys)
	case actionTime:
		e.Time, e.Within = fleetBegins+w.Now/1000, 1000 // in seconds, like an HTTP server
		return e, readClock, 0
	case actionCAS:
		if e.Applied = w.cas(p, a.Key, a.Old, a.Next); e.Applied {
			return e, applied, 0
		}
		return e, refused, 0
	}
	w.Fail("a request of kind %d", a.Kind)
	return e, readOne, 0
}

// cas is the store's linearization point, where the windows are checked.
func (w *fleetWorld) cas(p *fleetProcess, key string, old, next []byte) bool {
	s := &w.store
	n := w.numberOf(key)
	if n < 0 {
		if !bytes.Equal(s.config, old) {
			return false
		}
		s.config = next
		return true
	}
	if !bytes.Equal(s.records[n], old) {
		return false
	}
	m := &s.marks[n]
	owner, state := recordField(next, `"owner":`), recordField(next, `"state":`)
	until, err := strconv.ParseInt(recordField(next, `"until":`), 10, 64)
	if err != nil {
		w.Fail("record %s: %v", next, err)
	}
	if p.claim != nil && bytes.Equal(p.claim.next, next) {
		p.claim.applied, p.claim.before = true, m.until
	}
	if state == "held" {
		p.granted(n, until)
	}
	if until < m.taken {
		w.Fail("windows: the mark of node %d becomes %d, and IDs were made up to %d", n, until, m.taken)
	}
	s.records[n], m.owner, m.until = next, owner, until
	return true
}

// operator is the store as the creator of the sequencer uses it: without
// delays.
type fleetOperator struct{ w *fleetWorld }

func (o fleetOperator) Get(context.Context, string) ([]byte, error) { return o.w.store.config, nil }

func (o fleetOperator) CAS(_ context.Context, key string, old, next []byte) (bool, error) {
	o.w.configKey = key
	return o.w.cas(nil, key, old, next), nil
}

func (o fleetOperator) List(context.Context, string, func(string, []byte) bool) error {
	return errors.ErrUnsupported
}

func (o fleetOperator) Close() error { return nil }
