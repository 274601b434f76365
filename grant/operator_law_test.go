package grant

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A mapStore keeps values in a map.
type mapStore struct {
	mu     sync.Mutex // guards values
	values map[string][]byte
	writes []string // the keys of CAS calls
}

func (s *mapStore) Close() error { return nil }

func (s *mapStore) Get(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], nil
}

func (s *mapStore) List(_ context.Context, prefix string, yield func(string, []byte) bool) error {
	s.mu.Lock()
	all := maps.Clone(s.values)
	s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(key, prefix) && !yield(key, all[key]) {
			break
		}
	}
	return nil
}

func (s *mapStore) CAS(_ context.Context, key string, old, next []byte) (bool, error) {
	s.writes = append(s.writes, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(s.values[key], old) {
		return false, nil
	}
	s.values[key] = next
	return true, nil
}

// sequencerStore returns a store with a sequencer "s", and its configuration.
func sequencerStore(change func(*Info)) (*mapStore, Info) {
	c := newInfo("s", Config{Layout: firn.MustParseLayout("bits=time:48.node:4,unit=1ms,epoch=0"), MaxAhead: 50 * time.Millisecond, Window: 6 * time.Second})
	c.nonce, c.Created = "n", timeOf(rigTime-1_000_000)
	if change != nil {
		change(&c)
	}
	return &mapStore{values: map[string][]byte{configKey("s"): c.encode()}}, c
}

func at(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }

// TestRepairRaces: a repair does not touch a record that was written since it
// was listed, unless it must still be repaired.
func TestRepairRaces(t *testing.T) {
	key := nodeKey("s", 3, 15)
	ahead := nodeRecord{Nonce: "n", Owner: "a", Until: rigTime + 1_000_000, Wall: rigTime, State: nodeHeld, Gap: span{rigTime - 10, rigTime + 900_000}}
	limit := int64(rigTime + 50 + 2*6000)
	for name, tt := range map[string]struct {
		floor   int64
		change  func(n *nodeRecord)
		repairs bool
	}{
		"the same":                        {change: func(n *nodeRecord) { n.Nonce = "m" }, repairs: true},
		"a mark at the limit":             {change: func(n *nodeRecord) { n.Until, n.Gap.until = limit, limit-1 }},
		"a mark behind the limit":         {change: func(n *nodeRecord) { n.Until, n.Gap.until = limit+1, limit-1 }, repairs: true},
		"a mark at the floor":             {floor: limit + 7, change: func(n *nodeRecord) { n.Until, n.Gap.until = limit+7, limit-1 }},
		"a mark behind the floor":         {floor: limit + 7, change: func(n *nodeRecord) { n.Until, n.Gap.until = limit+8, limit-1 }, repairs: true},
		"a floor below the limit":         {floor: limit - 7, change: func(n *nodeRecord) { n.Until, n.Gap.until = limit-6, limit-9 }},
		"without a gap":                   {change: func(n *nodeRecord) { n.Gap = span{} }},
		"with a gap that has ended":       {change: func(n *nodeRecord) { n.Gap.until = rigTime }},
		"damaged":                         {},
		"without a nonce":                 {change: func(n *nodeRecord) { n.Nonce = "" }},
		"a mark at the floor when listed": {floor: ahead.Until, change: func(n *nodeRecord) {}},
	} {
		s, _ := sequencerStore(func(c *Info) {
			if tt.floor != 0 {
				c.fenceFloor = timeOf(tt.floor)
			}
		})
		s.values[key] = ahead.encode()
		var written []byte
		meddles := &meddledStore{mapStore: s, key: key}
		if tt.change == nil {
			written = []byte("{")
		} else {
			n := ahead
			tt.change(&n)
			written = n.encode()
		}
		meddles.value = written
		report, err := Repair(t.Context(), meddles, "s", &RepairOptions{Now: at(rigTime)})
		if listed := tt.floor < ahead.Until; err != nil || (len(report.Nodes) == 1) != listed {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		n, err := decodeNode(key, s.values[key])
		if repaired := err == nil && n.Spoiled.length() > 0; repaired != tt.repairs || !repaired && !bytes.Equal(s.values[key], written) {
			t.Errorf("%s: it is %s, before %s, want repaired %t", name, s.values[key], written, tt.repairs)
		}
	}
}

// A meddledStore replaces a value that was listed.
type meddledStore struct {
	*mapStore
	key   string
	value []byte
}

func (s *meddledStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	err := s.mapStore.List(ctx, prefix, yield)
	s.values[s.key] = s.value
	return err
}

// TestRangeOfMembers: a member takes node IDs of its own range that lie in that
// of the sequencer, and none of one that was moved.
func TestRangeOfMembers(t *testing.T) {
	for _, tt := range []struct {
		lo, hi uint64
		moved  string
		says   string // or keys, from first to last
		first  uint64
		last   uint64
	}{
		{lo: 0, hi: 15, first: 5, last: 7},
		{lo: 5, hi: 7, first: 5, last: 7},
		{lo: 4, hi: 6, first: 5, last: 6},
		{lo: 6, hi: 9, first: 6, last: 7},
		{lo: 0, hi: 4, says: "may take 0..4"},
		{lo: 8, hi: 15, says: "may take 8..15"},
		{lo: 0, hi: 15, moved: "etcd://other", says: "s was moved to etcd://other"},
	} {
		r := newRig(t, 4, nil)
		r.m.settings.Nodes = &NodeRange{tt.lo, tt.hi}
		c := r.m.seen.info
		c.Config.Nodes, c.MovedTo, c.nonce = &NodeRange{5, 7}, tt.moved, "limited"
		r.tokens()
		r.step(event{Kind: eventJoin})
		r.answer(event{Values: [][]byte{c.encode()}})
		if tt.says != "" {
			if err := r.m.status.Err; r.request != nil || err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%+v: %v, %+v", tt, err, r.request)
			}
			continue
		}
		if got := r.asks(actionGetMany).Keys; got[0] != r.key(tt.first) || got[len(got)-1] != r.key(tt.last) || len(got) != int(tt.last-tt.first)+1 {
			t.Errorf("%+v: it reads %v", tt, got)
		}
	}
	// A member that holds a node ID gives it back.
	r := newRig(t, 4, nil)
	r.holding()
	moved := r.m.seen.info
	moved.MovedTo, moved.nonce = "etcd://other", "moved"
	r.step(event{Kind: eventHint})
	if r.answer(event{Values: [][]byte{moved.encode()}}); r.did(actionSeal) == nil || !errors.Is(r.m.status.Err, ErrDetached) {
		t.Errorf("%+v, %+v", r.m.status, r.out)
	}
}

// TestDestroyWrites: while it waits, a destroy writes the configuration once,
// looks at the windows at the configured interval, and needs no proof of
// records that their owners gave back to it.
func TestDestroyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.UnixMilli(rigTime)))
		s, _ := sequencerStore(nil)
		key := nodeKey("s", 3, 15)
		s.values[key] = nodeRecord{Nonce: "n", Owner: "a", Until: rigTime + 6000, Wall: rigTime, State: nodeHeld}.encode()
		go func() {
			time.Sleep(5400 * time.Millisecond) // its owner
			s.mu.Lock()
			defer s.mu.Unlock()
			n, err := decodeNode(key, s.values[key])
			if err != nil || n.State != nodeClosing {
				t.Errorf("node ID 3 is %+v, %v", n, err)
			}
			n.State, n.Nonce, n.Until = nodeFree, "released", rigTime+1
			s.values[key] = n.encode()
		}()
		must.Get(Destroy(t.Context(), s, "s", nil))(t)
		if took := time.Since(time.UnixMilli(rigTime)); took != 5500*time.Millisecond {
			t.Errorf("it took %v, want a look every 250 ms", took)
		}
		if want := []string{configKey("s"), key, configKey("s")}; !slices.Equal(s.writes, want) {
			t.Errorf("it wrote %v, want %v", s.writes, want)
		}
	})
}
