//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// mutantEnv names a mistake of the protocol, for binaries of mutantBinary.
const mutantEnv = "FIRN_E2E_MUTANT"

// switchOn is added to package internal/mutant, which this module may not
// import.
const switchOn = `package mutant

import "os"

func init() {
	for _, m := range All() {
		if Enabled && m.String() == os.Getenv("` + mutantEnv + `") {
			Set(m)
			return
		}
	}
	if os.Getenv("` + mutantEnv + `") != "" {
		panic("there is no such mistake")
	}
}
`

// mutantBinary builds this test with mistakes in the protocol, of which a task
// names one.
func mutantBinary(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/firnid/firn/internal/mutant").Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("SKIPPED: NO GO TO BUILD MISTAKES WITH: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	source, overlay, binary := filepath.Join(dir, "switch.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "worker")
	replace, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(strings.TrimSpace(string(out)), "switch.go"): source},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{source: switchOn, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags=firnmutant", "-overlay="+overlay, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// TestEtcdMutant: the harness notices mistakes. Each has a story in which it
// shows; the same story without the mistake has nothing to notice.
func TestEtcdMutant(t *testing.T) {
	nettest.All(t)
	c := etcdtest.Start(t)
	binary := mutantBinary(t)
	const most = 20 // repetitions of a scenario
	stories := 0
	for _, mistake := range []struct {
		name  string
		story func(t *testing.T, c *etcdtest.Cluster, f *fleet)
		task  task // with one number, of 256 IDs in a millisecond
	}{
		// A node ID changes hands while its IDs are far ahead of the clock.
		{"start at clock", handOver, task{Window: 10 * time.Second, Ahead: 5 * time.Second}},
		// A worker is cut off, and another takes its node ID when its window has
		// ended.
		{"timeout is success", cutOff, task{Window: 2 * time.Second, Ahead: 200 * time.Millisecond}},
	} {
		run := func(t *testing.T, mutant string) (*fleet, tally) {
			stories++
			j := mistake.task
			j.Store = c.URL(fmt.Sprintf("story%d", stories))
			j.Layout, j.One, j.Mutant = "bits=time:41.node:1.seq:8,unit=1ms,epoch=2026-01-01T00:00:00Z", true, mutant
			f := newFleet(t, binary, j)
			mistake.story(t, c, f)
			f.kill()
			return f, f.check()
		}
		t.Run(strings.ReplaceAll(mistake.name, " ", "-"), func(t *testing.T) {
			begin := time.Now()
			for times := 1; ; times++ {
				caught := false
				t.Run("with", func(t *testing.T) {
					f, seen := run(t, mistake.name)
					if caught = seen.twice > 0; caught {
						t.Logf("report: etcd, the mistake %q: noticed after %v and %d stories: %d of %d IDs of %d processes twice",
							mistake.name, time.Since(begin).Round(100*time.Millisecond), times, seen.twice, seen.ids, f.started)
					}
				})
				if caught || t.Failed() {
					break
				}
				if times == most {
					t.Fatalf("the mistake %q was not noticed in %d stories", mistake.name, times)
				}
			}
			t.Run("without", func(t *testing.T) {
				_, seen := run(t, "")
				if seen.twice > 0 {
					t.Errorf("%d IDs twice without any mistake: %q", seen.twice, seen.examples)
				}
			})
		})
	}
	// Chaos notices one that no story is made for: most often while several
	// workers start, so that they start again and again.
	t.Run("a-CAS-that-does-not-compare", func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		counts := make(map[string]int)
		begin := time.Now()
		for round := range 3 * most {
			j := chaosTask(c.URL(fmt.Sprintf("blind%d", round)))
			j.Blind = true
			f := newFleet(t, os.Args[0], j)
			for i := range 6 {
				f.start(i)
			}
			for range 20 {
				f.step(r, counts)
				time.Sleep(100 * time.Millisecond)
			}
			f.kill()
			if seen := f.check(); seen.twice > 0 {
				t.Logf("report: etcd, a CAS that does not compare: noticed after %v and %d starts: %d of %d IDs twice",
					time.Since(begin).Round(100*time.Millisecond), round+1, seen.twice, seen.ids)
				return
			}
		}
		t.Fatalf("a store that does not compare was not noticed, with %v", counts)
	})
}

// handOver: a worker makes IDs ahead of the clock and gives the number back;
// the next one starts at once.
func handOver(t *testing.T, _ *etcdtest.Cluster, f *fleet) {
	first := f.start(0)
	until(t, "IDs far ahead of the clock", func() bool {
		_, last, ok := f.made(first)
		return ok && time.Until(f.time(last)) > 3*time.Second
	})
	first.signal(syscall.SIGTERM)
	<-first.ended
	second := f.start(1)
	until(t, "IDs of the next worker", func() bool { _, _, ok := f.made(second); return ok })
}

// cutOff: a worker makes IDs with nothing between it and etcd any more, for as
// long as it will. Another one waits for its number, and gets it.
func cutOff(t *testing.T, c *etcdtest.Cluster, f *fleet) {
	l := c.NewLink()
	alone, rest := f.task, f.task
	_, path, _ := strings.Cut(strings.TrimPrefix(alone.Store, "etcd://"), "/")
	alone.Store = l.URL(path)
	f.task = alone
	first := f.start(0)
	until(t, "IDs of the first worker", func() bool { _, _, ok := f.made(first); return ok })
	f.task = rest
	second := f.start(1)
	for i := range etcdtest.Members {
		l.Cut(i, true)
	}
	until(t, "IDs of the second worker for half a second", func() bool {
		begin, last, ok := f.made(second)
		return ok && f.time(last).Sub(f.time(begin)) > 500*time.Millisecond
	})
}
