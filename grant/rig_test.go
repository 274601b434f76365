package grant

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn"
)

// A rig is a machine under manual control, with its clocks and its actions.
type rig struct {
	t          *testing.T
	m          *machine
	wall, mono int64
	used       int64
	random     uint64 // the random number; each token is still different
	out        []action
	request    *action // the request without an answer
}

// rigTime is the initial time of a rig, by both its clocks.
const rigTime = 1_795_132_800_000

// newRig makes the machine of a sequencer "s" with 2^bits node IDs, a MaxAhead
// of 50 ms and a window of 6000 ms; the minimum window is 100 ms. It has read
// the configuration, and has not joined.
func newRig(t *testing.T, bits int, change func(*Info)) *rig {
	t.Helper()
	c := newInfo("s", Config{
		Layout:   firn.MustParseLayout(fmt.Sprintf("bits=time:48.node:%d,unit=1ms,epoch=0", bits)),
		MaxAhead: 50 * time.Millisecond, Window: 6 * time.Second,
	})
	c.nonce, c.Created = "n", timeOf(rigTime-1_000_000)
	if change != nil {
		change(&c)
	}
	r := &rig{t: t, wall: rigTime, mono: 1_000_000, used: never}
	tokens := uint64(0)
	r.m = newMachine(settings{name: "s", host: "h", random: func() uint64 { tokens++; return tokens }})
	r.m.settings.random = func() uint64 { return r.random }
	r.m.wall, r.m.mono = r.wall, r.mono
	if !r.m.evaluateConfig(c.encode()) {
		t.Fatal(r.m.status.Err)
	}
	r.m.owner = "us"
	return r
}

func (r *rig) key(node uint64) string { return r.m.key(node) }

// record returns a record as other members write it.
func (r *rig) record(change func(*nodeRecord)) []byte {
	n := nodeRecord{Nonce: "n", Owner: "them", Until: r.wall - 60_000, Wall: r.wall - 66_000, State: nodeFree, Host: "h"}
	if change != nil {
		change(&n)
	}
	return n.encode()
}

func pickOne[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// step passes an event on, and records the machine's actions.
func (r *rig) step(e event) []action {
	r.t.Helper()
	e.Wall, e.Mono, e.Used = r.wall, r.mono, r.used
	r.out = r.m.step(e)
	for _, a := range r.out {
		if a.isRequest() {
			if r.request != nil {
				r.t.Fatalf("it asks for %+v, and %+v has no answer yet", a, *r.request)
			}
			r.request = &a
		}
	}
	return r.out
}

// answer answers the pending request.
func (r *rig) answer(e event) []action {
	r.t.Helper()
	if r.request == nil {
		r.t.Fatalf("it asks for nothing; it is %+v", r.m.status)
	}
	r.request = nil
	e.Kind = eventAnswered
	return r.step(e)
}

// later advances both clocks, and passes an eventTick.
func (r *rig) later(ms int64) []action {
	r.t.Helper()
	r.wall, r.mono = r.wall+ms, r.mono+ms
	return r.step(event{Kind: eventTick})
}

// asks expects a request of a kind, and returns it.
func (r *rig) asks(kind actionKind) action {
	r.t.Helper()
	if r.request == nil || r.request.Kind != kind {
		r.t.Fatalf("it asks for %+v, want one of kind %d; it is %+v", r.request, kind, r.m.status)
	}
	return *r.request
}

// did returns the action of a kind in the last step, or nil.
func (r *rig) did(kind actionKind) *action {
	for _, a := range r.out {
		if a.Kind == kind {
			return &a
		}
	}
	return nil
}

// alarm returns the alarm of the last step, or 0.
func (r *rig) alarm() Alarm {
	if a := r.did(actionAlarm); a != nil {
		return a.Alarm.Kind
	}
	return 0
}

// read parses a record that the machine would write.
func (r *rig) read(value []byte) nodeRecord {
	r.t.Helper()
	n, err := decodeNode("k", value)
	if err != nil {
		r.t.Fatalf("%s: %v", value, err)
	}
	return n
}

// tokens gives the machine distinct nonces, and r.random as the random number.
func (r *rig) tokens() {
	n := uint64(0)
	r.m.settings.random = func() uint64 {
		if r.random != 0 {
			return r.random
		}
		n++
		return n
	}
}

// pickable moves the machine to the point where it has read records to choose
// one.
func (r *rig) pickable() action {
	r.t.Helper()
	r.tokens()
	r.step(event{Kind: eventJoin})
	if r.asks(actionGet).Key != "v1/s/config" {
		r.t.Fatalf("it reads %q", r.request.Key)
	}
	r.answer(event{Values: [][]byte{r.m.seen.infoBytes}})
	return r.asks(actionGetMany)
}

// claiming moves the machine to the point where it has written a claim.
func (r *rig) claiming() action {
	r.t.Helper()
	a := r.pickable()
	r.answer(event{Keys: a.Keys, Values: make([][]byte, len(a.Keys))})
	return r.asks(actionCAS)
}

// holding moves the machine to the point where it holds a node ID, and returns
// the record.
func (r *rig) holding() []byte {
	r.t.Helper()
	claim := r.claiming()
	r.answer(event{Applied: true})
	if a := r.asks(actionGetMany); !slices.Equal(a.Keys, []string{claim.Key, "v1/s/config"}) {
		r.t.Fatalf("it reads %v again", a.Keys)
	}
	r.answer(event{Values: [][]byte{claim.Next, r.m.seen.infoBytes}})
	if b := r.did(actionBegin); b == nil || r.m.status.Phase != Holding {
		r.t.Fatalf("it does not begin: %+v", r.out)
	}
	return claim.Next
}

// renewing moves the machine to the point where it has written a renewal of its
// window.
func (r *rig) renewing() action {
	r.t.Helper()
	r.wall, r.mono = r.wall+2000, r.mono+2000
	r.used = r.wall
	r.step(event{Kind: eventDemand})
	return r.asks(actionCAS)
}
