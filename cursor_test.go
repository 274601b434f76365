package firn

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// leased returns a cursor that has slots of its own left.
func leased(t *testing.T, o Options) (*Generator, *Cursor, func(time.Duration)) {
	t.Helper()
	g, clock, _ := open(t, "default", o)
	c := g.Cursor()
	for range 100 {
		if _, err := c.TryNext(); err != nil {
			t.Fatal(err)
		}
	}
	for c.next == c.end {
		if _, err := c.TryNext(); err != nil {
			t.Fatal(err)
		}
	}
	return g, c, func(d time.Duration) { clock.Add(int64(d)) }
}

// TestCursorAfterSealAndSwitch: slots left in a cursor are not used after Seal
// or Switch has returned.
func TestCursorAfterSealAndSwitch(t *testing.T) {
	g, c, _ := leased(t, Options{MaxAhead: time.Second})
	last, _ := c.TryNext()
	if err := g.Switch(Grant{Node: 9, From: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
	id, err := c.TryNext()
	if p, _ := g.layout.Decompose(id); err != nil || p.Node != 9 || id <= last {
		t.Errorf("after Switch: %+v, %v, want node 9", p, err)
	}

	g, c, _ = leased(t, Options{MaxAhead: time.Second})
	last, _ = c.TryNext()
	until := g.Seal()
	if p, _ := g.layout.Decompose(last); !p.Time.Before(until) {
		t.Errorf("Seal = %v, but an ID was of %v", until, p.Time)
	}
	if id, err := c.TryNext(); !errors.Is(err, ErrSealed) {
		t.Errorf("after Seal: %v, %v, want ErrSealed", id, err)
	}
	if id, err := c.Next(t.Context()); !errors.Is(err, ErrSealed) {
		t.Errorf("after Seal: %v, %v, want ErrSealed", id, err)
	}
}

// TestCursorIsNotStale: the rest of a block is not used after the clock has
// advanced, nor when the counter returns to an earlier value.
func TestCursorIsNotStale(t *testing.T) {
	_, c, pass := leased(t, Options{MaxAhead: time.Second})
	last, _ := c.TryNext()
	left := c.end
	pass(time.Hour)
	id, err := c.TryNext()
	if err != nil || id>>22-last>>22 < ID(time.Hour/time.Millisecond) {
		t.Errorf("an hour later: %v after %v, %v", id, last, err)
	}
	pass(-time.Hour)
	if id, err := c.TryNext(); err == nil && uint64(id)>>22<<12|uint64(id)&0xfff < left {
		t.Errorf("when the counter comes back: %v, of a block that is over", id)
	}
}

// TestCursorForgetsItsBlockInLine: a cursor that has waited in line begins a
// new block. Its old one lies below the ID that it got there, and may belong to
// a term that has ended; the condition that makes it stale can pass.
func TestCursorForgetsItsBlockInLine(t *testing.T) {
	for _, change := range []string{"time", "grant"} {
		if err := cursorInLine(t, change); err != nil {
			t.Errorf("change of %s: %v", change, err)
		}
	}
}

// cursorInLine makes a cursor with a block wait in line while the time or the
// grant changes, and returns what is wrong with its IDs.
func cursorInLine(t *testing.T, change string) error {
	g, c, pass := leased(t, Options{MaxAhead: time.Second})
	block := *c
	if change == "time" {
		pass(time.Second) // the block is stale
	}
	// A batch makes it wait in line, where it is served when the batch leaves.
	ctx, cancel := context.WithCancel(t.Context())
	batch, waited := make(chan error, 1), make(chan ID, 1)
	go func() { _, err := g.NextBatch(ctx, 10_000*4096); batch <- err }()
	inLine(g, 1)
	if change == "grant" {
		if err := g.Switch(Grant{Node: 9, From: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		id, err := c.Next(t.Context())
		if err != nil {
			t.Error(err)
		}
		waited <- id
	}()
	inLine(g, 2)
	cancel()
	if err := <-batch; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got := []ID{<-waited}
	if change == "time" {
		pass(-time.Second) // the counter returns to where the block was fresh
	}
	for range 10 {
		if id, err := c.TryNext(); err == nil {
			got = append(got, id)
		}
	}
	for i, id := range got {
		p, _ := g.layout.Decompose(id)
		slot := g.slotOf(t, id)
		switch node := g.term.Load().grant.Node; {
		case p.Node != node:
			return fmt.Errorf("ID %d is of node %d, want %d", i, p.Node, node)
		case slot >= block.next && slot < block.end:
			return fmt.Errorf("ID %d is slot %d of node %d, of the block [%d, %d) from before the line", i, slot, p.Node, block.next, block.end)
		case i > 0 && id <= got[i-1]:
			return fmt.Errorf("ID %v comes after %v", id, got[i-1])
		}
	}
	return nil
}

// inLine waits until n calls are in line.
func inLine(g *Generator, n int64) {
	for g.line.waiting.Load() != n {
		runtime.Gosched()
	}
}

// TestCursorLosesLittle: a cursor that is rarely called leases single IDs.
func TestCursorLosesLittle(t *testing.T) {
	g, c, pass := leased(t, Options{MaxAhead: 0})
	for range 20 {
		pass(time.Millisecond)
		if _, err := c.TryNext(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.TryNext(); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.end - c.next; n > 1 {
		t.Errorf("%d slots are left of a block, want at most 1", n)
	}
	// A block ends at MaxAhead: each slot of the tick is used.
	pass(time.Millisecond)
	n := 0
	for ; ; n++ {
		if _, err := c.TryNext(); err != nil {
			break
		}
	}
	if n != 4096 || g.term.Load().word.Load()&0xfff != 0 {
		t.Errorf("a cursor made %d IDs of a tick, want 4096", n)
	}
}
