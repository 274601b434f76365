package firn_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// staticLayout is set in the processes that TestChainOfStaticProcesses starts.
const staticLayout = "FIRN_TEST_STATIC_LAYOUT"

func TestMain(m *testing.M) {
	layout, ok := os.LookupEnv(staticLayout)
	if !ok {
		os.Exit(m.Run())
	}
	made, err := staticProcess(firn.MustParseLayout(layout))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(uint64(made[0]), uint64(made[1]))
	os.Exit(0)
}

// staticProcess makes all the IDs of a static node that MaxAhead allows, and
// returns the first and the last.
func staticProcess(l firn.Layout) (made [2]firn.ID, err error) {
	const ahead = 5 * time.Millisecond
	g, err := firn.NewGenerator(l, firn.StaticGrant(3), nil)
	if err != nil {
		return made, err
	}
	id, err := g.TryNext()
	if w, ok := errors.AsType[*firn.WaitError](err); ok {
		if w.Wait > l.Unit() {
			return made, fmt.Errorf("the first TryNext of a process is refused for %v, want a tick of %v at most", w.Wait, l.Unit())
		}
		id, err = g.Next(context.Background())
	}
	for made[0] = id; err == nil; id, err = g.TryNext() {
		if id <= made[1] {
			return made, fmt.Errorf("ID %v comes after %v", id, made[1])
		}
		if p, _ := l.Decompose(id); time.Until(p.Time) > ahead {
			return made, fmt.Errorf("ID %v leads the clock by %v, want %v at most", id, time.Until(p.Time), ahead)
		}
		made[1] = id
	}
	if !errors.Is(err, firn.ErrExhausted) {
		return made, err
	}
	return made, nil
}

// TestChainOfStaticProcesses: processes with one static node ID, each started
// as soon as the one before has made all the IDs that MaxAhead allows, repeat
// none: the IDs of each are above those of the one before.
func TestChainOfStaticProcesses(t *testing.T) {
	exe := must.Get(os.Executable())(t)
	for _, chain := range []struct {
		layout    string
		processes int
	}{
		{"bits=time:41.node:10.seq:2,unit=1ms", 900},
		{"sonyflake", 80},
		{"bits=time:51.node:10,unit=10us", 20},
	} {
		if testing.Short() {
			chain.processes /= 20
		}
		last, ended := uint64(0), func() error { return nil }
		for i := range chain.processes {
			c := exec.CommandContext(t.Context(), exe)
			// With the race detector, a process would sleep for a second at its end.
			c.Env = append(os.Environ(), staticLayout+"="+chain.layout, "GORACE=atexit_sleep_ms=0")
			out, err := c.StdoutPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			before := ended() // the one before ends while this one starts
			ended = c.Wait
			line, _ := bufio.NewReader(out).ReadString('\n')
			var first, next uint64
			if _, err := fmt.Sscan(line, &first, &next); err != nil || before != nil {
				t.Fatalf("%s, process %d: %q, %v; the one before: %v", chain.layout, i, line, err, before)
			}
			if first <= last {
				t.Fatalf("%s, process %d: its first ID is %d, but %d was made before", chain.layout, i, first, last)
			}
			last = next
		}
		must.Do(t, ended())
	}
}
