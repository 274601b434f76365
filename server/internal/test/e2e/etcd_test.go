//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/etcdtest"
)

// soakTime is how long the faults continue, once each has happened.
// FIRN_SOAK=1h makes it an hour in all.
func soakTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("FIRN_SOAK")); err == nil && d > 0 {
		return d
	}
	if os.Getenv("FIRN_SOAK") != "" {
		return 30 * time.Minute
	}
	return 0
}

// newRand returns what decides on faults. FIRN_SEED repeats their order; what
// they meet is another matter.
func newRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FIRN_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("FIRN_SEED=%d repeats the faults", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// TestEtcdChaos: processes make IDs with node IDs from an etcd of three
// members, while members and processes are killed, stopped and cut off. Every
// ID is checked; so is the history of reads and writes of others.
func TestEtcdChaos(t *testing.T) {
	r := newRand(t)
	c := etcdtest.Start(t)
	const size = 6
	f := newFleet(t, chaosTask(c.URL("chaos")+"?timeout=1s"))
	for i := range size {
		f.start(i)
	}
	h := newRecorder(t, c.URL("history")+"?timeout=1s")

	window := f.task.Window
	member := func() int { return r.IntN(etcdtest.Members) }
	leader := func() int { i, _ := c.WaitLeader(); return i }
	nothing := func() {}
	kill := func(all ...int) (time.Duration, func()) {
		for _, i := range all {
			c.Kill(i)
		}
		return 0, func() {
			for _, i := range all {
				c.Start(i)
			}
		}
	}
	stop := func(i int) (time.Duration, func()) { c.Stop(i); return window, func() { c.Continue(i) } }
	isolate := func(i int) (time.Duration, func()) { c.Isolate(i, true); return 0, func() { c.Isolate(i, false) } }
	cut := func(from, to int) (time.Duration, func()) {
		c.CutMember(from, to, true)
		return 0, func() { c.CutMember(from, to, false) }
	}
	other := func(i int) int { return (i + 1 + r.IntN(etcdtest.Members-1)) % etcdtest.Members }
	faults := map[string]fault{
		"member killed":                    func() (time.Duration, func()) { return kill(member()) },
		"all killed":                       func() (time.Duration, func()) { return kill(0, 1, 2) },
		"member stopped beyond the window": func() (time.Duration, func()) { return stop(member()) },
		"member isolated":                  func() (time.Duration, func()) { return isolate(member()) },
		"one-way cut":                      func() (time.Duration, func()) { i := member(); return cut(i, other(i)) },
		"clients cut": func() (time.Duration, func()) {
			first, second := c.Clients[member()], c.Clients[member()]
			first.Cut(true)
			second.Cut(true)
			return 0, func() { first.Cut(false); second.Cut(false) }
		},
		"answers cut": func() (time.Duration, func()) {
			for _, l := range c.Clients {
				l.CutAnswers(true)
			}
			return time.Second, func() { // longer than anybody waits for one
				for _, l := range c.Clients {
					l.CutAnswers(false)
				}
			}
		},
		"compaction":                       func() (time.Duration, func()) { c.Compact(); return 0, nothing },
		"defragmentation":                  func() (time.Duration, func()) { c.Defragment(member()); return 0, nothing },
		"leader killed":                    func() (time.Duration, func()) { return kill(leader()) },
		"leader stopped beyond the window": func() (time.Duration, func()) { return stop(leader()) },
		"leader isolated":                  func() (time.Duration, func()) { return isolate(leader()) },
		"leader not heard by one":          func() (time.Duration, func()) { i := leader(); return cut(i, other(i)) },
		"leader deaf to one":               func() (time.Duration, func()) { i := leader(); return cut(other(i), i) },
		"leader's clients cut": func() (time.Duration, func()) {
			l := c.Clients[leader()]
			l.Cut(true)
			return 0, func() { l.Cut(false) }
		},
	}
	e := &chaos{t: t, r: r, f: f, faults: faults, least: 1500 * time.Millisecond}
	e.run(soakTime(), h.happened)
	c.Ready()
	f.kill()
	e.report("etcd")
	h.check("etcd")
}
