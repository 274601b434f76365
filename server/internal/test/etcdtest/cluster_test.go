//go:build unix

package etcdtest

import (
	"errors"
	"fmt"
	"testing"
)

// TestCuts: a cut direction passes nothing, however long one waits, and works
// again afterwards.
func TestCuts(t *testing.T) {
	c := Start(t)
	direct := func(i int) string { return c.members[i].listenHTTP }
	others := func(i int) [2]int { return [2]int{(i + 1) % Members, (i + 2) % Members} }
	another := func(t *testing.T, old int) {
		t.Helper()
		c.until("another leader", func() error {
			if leader, _ := c.Leader(); leader == old || leader < 0 {
				return fmt.Errorf("the leader is %d", leader)
			}
			return nil
		})
	}
	for _, cut := range []struct {
		name string
		do   func(leader int, cut bool)
	}{
		{"the leader isolated", c.Isolate},
		{"the leader not heard", func(leader int, cut bool) {
			for _, i := range others(leader) {
				c.CutMember(leader, i, cut)
			}
		}},
		{"the leader deaf", func(leader int, cut bool) {
			for _, i := range others(leader) {
				c.CutMember(i, leader, cut)
			}
		}},
	} {
		t.Run(cut.name, func(t *testing.T) {
			old, _ := c.WaitLeader()
			cut.do(old, true)
			another(t, old)
			if err := c.put(direct(old), "a", cut.name); err == nil {
				t.Errorf("a member took a write without the others")
			}
			c.until("a write by another", func() error { return c.put(direct(others(old)[0]), "a", cut.name) })
			cut.do(old, false)
			c.Ready()
		})
	}
	t.Run("both others isolated", func(t *testing.T) {
		leader, _ := c.WaitLeader()
		for _, i := range others(leader) {
			c.Isolate(i, true)
		}
		if err := c.put(direct(leader), "a", "1"); err == nil {
			t.Error("a member took a write without the others")
		}
		for _, i := range others(leader) {
			c.Isolate(i, false)
		}
		c.Ready()
	})
	t.Run("clients", func(t *testing.T) {
		l := c.NewLink()
		l.Cut(0, true)
		if err := c.put(l.endpoints[0], "a", "1"); err == nil {
			t.Errorf("a member took a write through a link that is cut")
		}
		c.until("a write by the link to another", func() error { return c.put(l.endpoints[1], "a", "2") })
		c.until("a write by another link", func() error { return c.put(c.Clients.endpoints[0], "a", "2") })
		l.Cut(0, false)
		c.until("a write by the link", func() error { return c.put(l.endpoints[0], "a", "1") })
	})
	t.Run("answers", func(t *testing.T) {
		l := c.NewLink()
		_, before := c.WaitLeader()
		l.CutAnswers(0, true)
		if err := c.put(l.endpoints[0], "a", "1"); err == nil {
			t.Error("there was an answer")
		}
		c.until("the write arrives", func() error {
			if _, now := c.WaitLeader(); now == before {
				return errors.New("the revision is as it was")
			}
			return nil
		})
		l.CutAnswers(0, false)
	})
	t.Run("processes", func(t *testing.T) {
		for i := range Members {
			c.Stop(i)
		}
		c.until("all stand still", func() error {
			if leader, _ := c.Leader(); leader >= 0 {
				return fmt.Errorf("member %d says that it leads", leader)
			}
			return nil
		})
		for i := range Members {
			c.Go(i)
		}
		c.Ready()
		for i := range Members {
			c.Kill(i)
		}
		for i := range Members {
			c.Start(i)
		}
		c.Ready()
		c.Compact()
		c.Defragment(0)
	})
}
