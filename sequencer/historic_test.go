package sequencer_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// A link is a member's connection to a store. It can be cut, and it can hold
// requests and deliver them after their senders have given up.
type link struct {
	grant.Store
	mu   sync.Mutex
	held chan struct{} // not nil: requests wait until it is closed, and are lost or late
	late bool          // a CAS is then applied, although its caller has gone
	done chan bool     // the results of late requests
}

func newLink(s grant.Store) *link { return &link{Store: s, done: make(chan bool, 100)} }

// hold holds all requests from now on.
func (l *link) hold(late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.late = make(chan struct{}), late
}

// release delivers late requests, and lets others pass.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held)
	l.held = nil
}

func (l *link) wait(ctx context.Context) (late bool, err error) {
	l.mu.Lock()
	held, late := l.held, l.late
	l.mu.Unlock()
	if held == nil {
		return false, nil
	}
	select {
	case <-held:
		return false, nil
	case <-ctx.Done():
		return late, ctx.Err()
	}
}

func (l *link) Get(ctx context.Context, key string) ([]byte, error) {
	if _, err := l.wait(ctx); err != nil {
		return nil, err
	}
	return l.Store.Get(ctx, key)
}

func (l *link) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if _, err := l.wait(ctx); err != nil {
		return err
	}
	return l.Store.List(ctx, prefix, yield)
}

func (l *link) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	late, err := l.wait(ctx)
	if err == nil {
		return l.Store.CAS(ctx, key, old, next)
	}
	if late {
		old, next := bytes.Clone(old), bytes.Clone(next)
		go func() {
			<-held
			ok, err := l.Store.CAS(context.Background(), key, old, next)
			l.done <- ok && err == nil
		}()
	}
	return false, err
}

// A clock is set by hand.
type handClock struct{ offset, frozen atomic.Int64 }

func (c *handClock) now() time.Time {
	if t := c.frozen.Load(); t != 0 {
		return time.Unix(0, t)
	}
	return time.Now().Add(time.Duration(c.offset.Load()))
}

func (c *handClock) freeze(stand bool) {
	if stand {
		c.frozen.Store(c.now().UnixNano())
		return
	}
	c.frozen.Store(0)
}

// zero is the range with the only node ID that all want.
var zero = &grant.Range{Lo: 0, Hi: 0}

func wanting(nodes *grant.Range) *sequencer.Config {
	return &sequencer.Config{Layout: layout, Window: 30 * time.Second, Nodes: nodes, WaitForNode: true, AllowClockBehind: true}
}

// draw takes IDs as long as there are any.
func draw(q *sequencer.Sequencer, n int) (all []firn.ID) {
	for range n {
		id, err := q.TryNext()
		if err != nil {
			break
		}
		all = append(all, id)
	}
	return all
}

// TestHistoric repeats incidents that caused duplicates elsewhere. Each title
// names the system.
func TestHistoric(t *testing.T) {
	for _, story := range []struct {
		name string
		play func(t *testing.T, s grant.Store)
	}{
		{"tikv/pd 9157: a leader that was one writes its window late", lateWriter},
		{"tikv/pd 8836, vitess 3116: memory of the time before, when elected again", electedAgain},
		{"leaf: two that start first", firstStart},
		{"lable: a clock that went back, and a restart", backAndRestart},
		{"hazelcast 11967: a split brain", splitBrain},
		{"cockroach 90459: a session ends, and its holder does not notice", frozenHolder},
		{"twitter snowflake 6: a clock that goes back while the sequence is used up", backInBurst},
	} {
		t.Run(story.name, func(t *testing.T) { bubble(t, story.play) })
	}
}

// There, the keys of the leadership were not compared when the window of
// timestamps was written, so an old leader could overwrite the new one's.
//
// Here, a renewal compares the record's bytes. It has no effect once another
// member has written the record, however late it is.
func lateWriter(t *testing.T, s grant.Store) {
	var all ids
	l := newLink(s)
	a := open(t, l, wanting(zero))
	all.add(t, next(t, a, 100)...)
	time.Sleep(9 * time.Second)
	l.hold(true)
	before := draw(a, 100) // its window continues; a renewal will follow soon
	all.add(t, before...)
	time.Sleep(time.Minute)
	if late := draw(a, 1); len(late) > 0 {
		t.Errorf("%v was made when the window was over", late)
	}
	b := open(t, s, wanting(zero))
	all.add(t, next(t, b, 100)...)
	l.release()
	synctest.Wait()
	refused := 0
	for len(l.done) > 0 {
		if <-l.done {
			t.Error("a renewal was applied although another member had the number")
		}
		refused++
	}
	if refused == 0 {
		t.Error("no renewal was late: nothing was shown")
	}
	for range 100 {
		all.add(t, draw(a, 50)...)
		all.add(t, draw(b, 50)...)
		time.Sleep(300 * time.Millisecond)
	}
	closeIt(t, b)
	closeIt(t, a)
}

// There, a process that was elected again continued with the window, or the
// block of a sequence, that it had kept in memory from its earlier term.
//
// Here, a node ID that was given back or lost begins again above the mark in
// its record.
func electedAgain(t *testing.T, s grant.Store) {
	var all ids
	a := open(t, s, wanting(zero))
	b := open(t, s, &sequencer.Config{Layout: layout, Window: 30 * time.Second, Nodes: zero, Detached: true})
	var last firn.ID
	for range 5 {
		for _, q := range []*sequencer.Sequencer{a, b} {
			if err := q.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			burst := next(t, q, 5000) // runs ahead of the clock
			all.add(t, burst...)
			if burst[0] <= last {
				t.Errorf("ID %v after %v of the other one", burst[0], last)
			}
			last = burst[len(burst)-1]
			if err := q.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeIt(t, a)
	closeIt(t, b)
}

// There, two processes with one address that started at the same time both
// found no node of theirs, and both took the same.
//
// Here, a record is created by a compare-and-swap with an absent value: only
// one succeeds.
func firstStart(t *testing.T, s grant.Store) {
	create(t, s, layout, 30*time.Second)
	var all ids
	var both sync.WaitGroup
	var had, refused atomic.Int64
	for range 20 {
		both.Go(func() {
			q, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Config{Layout: layout, Window: 30 * time.Second, Nodes: zero})
			if errors.Is(err, grant.ErrNodesExhausted) {
				refused.Add(1)
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			had.Add(1)
			all.add(t, next(t, q, 100)...)
			time.Sleep(time.Minute)
			closeIt(t, q)
		})
	}
	both.Wait()
	if had.Load() != 1 || refused.Load() != 19 {
		t.Errorf("%d have the number and %d were refused, want 1 and 19", had.Load(), refused.Load())
	}
}

// There, a generator that starts with a clock that was set back makes the same
// IDs again: the clock is all that it knows.
//
// Here, the record contains what was used, and the next owner begins above it;
// until then there is an error, and never an earlier ID.
func backAndRestart(t *testing.T, s grant.Store) {
	var all ids
	clock := new(handClock)
	c := wanting(zero)
	c.Now = clock.now
	var last firn.ID
	for round, back := range []time.Duration{0, -200 * time.Millisecond, -700 * time.Millisecond, -500 * time.Millisecond} {
		clock.offset.Store(int64(back))
		q := open(t, s, c)
		some := next(t, q, 1000)
		if some[0] <= last {
			t.Errorf("round %d: ID %v after %v", round, some[0], last)
		}
		last = some[len(some)-1]
		all.add(t, some...)
		closeIt(t, q)
	}
	// An hour exceeds any wait.
	clock.offset.Store(-int64(time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.WaitForNode = false
	if q, err := sequencer.Open(ctx, s, "orders", c); err == nil {
		all.add(t, draw(q, 1000)...)
		t.Error("a number whose mark is an hour ahead was had")
		closeIt(t, q)
	} else if !errors.Is(err, grant.ErrNodesExhausted) {
		t.Errorf("%v, want ErrNodesExhausted", err)
	}
}

// There, both halves of a cluster gave the same node ID to joining members.
//
// Here, a member that cannot reach the store has the rest of its window, and
// then nothing.
func splitBrain(t *testing.T, s grant.Store) {
	var all ids
	l := newLink(s)
	nodes := &grant.Range{Lo: 0, Hi: 1}
	a, b := open(t, s, wanting(nodes)), open(t, l, wanting(nodes))
	time.Sleep(2 * time.Second)
	l.hold(false)
	cut := time.Now()
	var joined *sequencer.Sequencer
	for time.Since(cut) < 3*time.Minute {
		all.add(t, draw(a, 20)...)
		here := draw(b, 20)
		all.add(t, here...)
		if time.Since(cut) > 35*time.Second && len(here) > 0 {
			t.Fatalf("%v without the store, an ID is made", time.Since(cut))
		}
		if joined == nil && time.Since(cut) > 70*time.Second {
			joined = open(t, s, wanting(nodes)) // takes the node ID that is free now
		}
		if joined != nil {
			all.add(t, draw(joined, 20)...)
		}
		time.Sleep(500 * time.Millisecond)
	}
	l.release()
	closeIt(t, a)
	closeIt(t, joined)
	all.add(t, next(t, b, 100)...) // the connection is back
	closeIt(t, b)
}

// There, the number belongs to a session; when that expires, another process
// takes it, and nothing prevents the first from using it: its clock stood
// still, and the store does not answer.
//
// Here, a window is a range of times, and times are part of the IDs: those of
// the first lie below the mark, and those of the second above.
func frozenHolder(t *testing.T, s grant.Store) {
	var all ids
	clock := new(handClock)
	l := newLink(s)
	c := wanting(zero)
	c.Now = clock.now
	a := open(t, l, c)
	all.add(t, next(t, a, 100)...)
	l.hold(true)
	clock.freeze(true)
	time.Sleep(2 * time.Minute)
	b := open(t, s, wanting(zero))
	all.add(t, next(t, b, 1000)...)
	stale := draw(a, 1000) // by its clock, the window has not ended
	if len(stale) == 0 {
		t.Error("the frozen one makes nothing: nothing was shown")
	}
	all.add(t, stale...)
	clock.freeze(false)
	l.release()
	for range 50 {
		all.add(t, draw(a, 50)...)
		all.add(t, draw(b, 50)...)
		time.Sleep(time.Second)
	}
	closeIt(t, b)
	closeIt(t, a)
}

// There, the first version continued with the sequence at 0 when the clock went
// back, and repeated IDs.
//
// Here, the next slot only grows, and a clock behind it makes callers wait.
func backInBurst(t *testing.T, s grant.Store) {
	var all ids
	clock := new(handClock)
	c := wanting(zero)
	c.Now = clock.now
	q := open(t, s, c)
	var mine []firn.ID
	for i := range 200 {
		some := draw(q, 3000)
		mine = append(mine, some...)
		clock.offset.Add(-int64(time.Duration(i%7) * time.Millisecond))
		time.Sleep(5 * time.Millisecond)
	}
	all.add(t, mine...)
	if len(mine) < 100_000 {
		t.Errorf("%d IDs: nothing was shown", len(mine))
	}
	closeIt(t, q)
}
