package grant

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

// A store is the database. If it has a standby, a write counts as applied when
// the standby has it: with a lag, writes are visible at once and durable later,
// or never, if the standby replaces the primary.
type store struct {
	w        *world
	values   map[string][]byte
	revision int64 // of all writes

	epoch    int   // of connections: a request of an earlier one gets no answer
	down     int64 // it does not answer until then
	restored int64 // when a backup was last restored

	standby map[string][]byte // the values of the standby while it lags behind
	durable int64             // its revision
	knew    time.Duration     // and the longest window in it
	lagging []write           // the writes that it lacks, in order
	old     map[string][]byte // the values of a replaced primary that still runs; nil if there is no such server
	backup  *backup           // the last one
	first   *backup           // and the first
}

// A write is a write applied only on the primary.
type write struct {
	key          string
	before, next []byte
	by           *member
}

// A backup is an earlier state of the store.
type backup struct {
	values   map[string][]byte
	revision int64
	known    time.Duration // the longest window then
}

func newStore(w *world) *store {
	return &store{w: w, down: noTime, restored: noTime, values: make(map[string][]byte)}
}

// do handles a request at this moment; by is nil for an operator. There is no
// answer while a write waits for a standby that lacks it.
func (s *store) do(a action, by *member) (e event, answered bool) {
	values := s.values
	isOld := s.old != nil && s.w.Chance(0.3)
	if isOld {
		s.w.fault(oldPrimary)
		values = s.old
		if by != nil {
			by.disturbed = s.w.Now
		}
	}
	switch a.Kind {
	case actionGet:
		e.Values = [][]byte{values[a.Key]}
	case actionGetMany:
		e.Keys = a.Keys
		for _, k := range a.Keys {
			e.Values = append(e.Values, values[k])
		}
	case actionList:
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if strings.HasPrefix(k, a.Key) {
				e.Keys, e.Values = append(e.Keys, k), append(e.Values, values[k])
			}
		}
	case actionTime:
		e.Time, e.Within = floorDiv(s.w.Now+s.w.clockOff, simMS), 50
	case actionCAS:
		if isOld {
			if !bytes.Equal(values[a.Key], a.Old) {
				return e, true
			}
			values[a.Key] = a.Next // it waits for a standby that will never have it
			return e, false
		}
		e.Applied = s.cas(a.Key, a.Old, a.Next, by)
		if e.Applied && s.standby != nil {
			s.w.fault(notDurable)
			return e, false
		}
	}
	return e, true
}

// cas is the store's linearization point.
func (s *store) cas(k string, old, next []byte, by *member) bool {
	now := s.values[k]
	if !bytes.Equal(now, old) {
		return false
	}
	s.revision++
	s.values[k] = next
	if s.standby != nil {
		s.lagging = append(s.lagging, write{k, now, next, by})
		return true
	}
	s.w.applied(k, now, next, by)
	return true
}

// lag makes the standby fall behind for a while.
func (s *store) lag() {
	if s.standby != nil || s.old != nil {
		return
	}
	s.w.fault(lag)
	s.standby, s.durable, s.knew = maps.Clone(s.values), s.revision, s.w.known
	epoch := s.epoch
	s.w.After(s.w.upTo(minute), func() {
		switch {
		case s.epoch != epoch:
		case s.w.Chance(0.5):
			s.failOver()
		default:
			s.catchUp()
		}
	})
	for _, p := range s.w.members {
		p.disturbed = max(p.disturbed, s.w.Now+minute)
	}
}

// catchUp gives the standby the writes that it lacks, which are then applied.
func (s *store) catchUp() {
	waiting := s.lagging
	s.standby, s.lagging = nil, nil
	for _, x := range waiting {
		s.w.applied(x.key, x.before, x.next, x.by)
	}
}

// failOver makes the standby the primary. What it lacks is lost. The old
// primary may run for a while, and be reachable for some members.
func (s *store) failOver() {
	w := s.w
	w.fault(failover)
	s.epoch++
	old := s.values
	s.values, s.revision, s.standby, s.lagging = s.standby, s.durable, nil, nil
	w.known = s.knew
	s.down = w.Now + second + w.upTo(4*second) // see grant's lineageValid
	for _, p := range w.members {
		p.disturbed = max(p.disturbed, w.Now+2*w.window()+30*second)
	}
	if w.Chance(0.5) {
		epoch := s.epoch
		s.old = old
		w.stale = w.Now + 2*minute
		w.After(w.upTo(minute), func() {
			if s.epoch == epoch {
				s.old = nil
			}
		})
	}
}

// save makes a backup.
func (s *store) save() {
	s.backup = s.snapshot()
	if s.first == nil {
		s.first = s.backup
	}
}

// snapshot returns a backup of the durable values.
func (s *store) snapshot() *backup {
	values, revision, known := s.values, s.revision, s.w.known
	if s.standby != nil {
		values, revision, known = s.standby, s.durable, s.knew
	}
	return &backup{maps.Clone(values), revision, known}
}

// restore restores a backup.
func (s *store) restore(b *backup) {
	s.epoch++
	s.restored = s.w.Now
	s.values, s.revision, s.backup = maps.Clone(b.values), b.revision, nil
	s.w.known = b.known
	s.standby, s.lagging, s.old = nil, nil, nil
}

// operator is the store as an operator uses it: without delays and, if sure is
// not set, with lost requests.
type operator struct {
	w    *world
	sure bool
}

var errLost = errors.New("sim: the operator has no answer")

func (o operator) do(a action) (event, error) {
	s := o.w.store
	if o.sure {
		e, _ := s.do(a, nil)
		return e, nil
	}
	if s.down > o.w.Now && !o.w.unfenced {
		return event{}, ErrNotSent
	}
	if o.w.Chance(0.005) {
		o.w.fault(operatorLost)
		return event{}, errLost
	}
	e, answered := s.do(a, nil)
	if !answered {
		return e, context.DeadlineExceeded
	}
	if o.w.Chance(0.005) {
		o.w.fault(operatorLost)
		return e, errLost
	}
	return e, nil
}

func (o operator) Get(_ context.Context, key string) ([]byte, error) {
	e, err := o.do(action{Kind: actionGet, Key: key})
	if err != nil {
		return nil, err
	}
	return e.Values[0], nil
}

func (o operator) CAS(_ context.Context, key string, old, next []byte) (bool, error) {
	e, err := o.do(action{Kind: actionCAS, Key: key, Old: old, Next: next})
	return e.Applied && err == nil, err
}

func (o operator) List(_ context.Context, prefix string, yield func(string, []byte) bool) error {
	e, err := o.do(action{Kind: actionList, Key: prefix})
	if err != nil {
		return err
	}
	for i, k := range e.Keys {
		if !yield(k, e.Values[i]) {
			break
		}
	}
	return nil
}

func (o operator) Close() error { return nil }
