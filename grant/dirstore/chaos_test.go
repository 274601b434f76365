//go:build linux || darwin

package dirstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
)

// TestChaos has eight processes count in one directory, while one after the
// other is killed, and one stops while it holds a lock and its record is not
// durable yet. Every number must have been given to one process only, and none
// that was acknowledged may be missing.
//
// It takes six seconds; FIRN_SOAK=10m has it run for ten minutes.
func TestChaos(t *testing.T) {
	t.Parallel() // it mostly waits
	duration := 6 * time.Second
	if testing.Short() {
		duration = time.Second
	}
	if text := os.Getenv("FIRN_SOAK"); text != "" {
		var err error
		if duration, err = time.ParseDuration(text); err != nil {
			duration = time.Minute
		}
	}
	const processes = 8
	dir := t.TempDir()
	c := &chaos{t: t, dir: dir, claims: make(map[claim][]*attempt)}
	open(t, dir) // creates it
	begin := time.Now()
	for n := range processes {
		c.start(n == 0)
	}
	for time.Since(begin) < duration && !t.Failed() {
		time.Sleep(200 * time.Millisecond)
		c.killOne()
	}
	c.end()
	took := time.Since(begin)
	c.verify(open(t, dir))
	if !t.Failed() {
		t.Logf("report: directory store under chaos: %d processes in %.1f s, %d killed, %d stopped inside a lock, of which %d killed there; "+
			"%d increments acknowledged, %d not, %d unknown of which %d applied; each number given once",
			c.started, took.Seconds(), c.killed, c.stopped, c.killedInside, c.acknowledged, c.refused, c.unknown, c.unknownApplied)
	}
}

// chaosKeys are few, so that the processes compete.
var chaosKeys = []string{"chaos/a", "chaos/b", "chaos/c", "chaos/d", "chaos/e"}

// A claim is a number of a counter.
type claim struct {
	key string
	n   int
}

// An attempt is one CAS of a process to a number.
type attempt struct {
	by      string // what it wrote besides the number
	outcome string // "try" while it is in progress, then "ok", "no" or "unknown"
}

// chaos is the parent of the processes.
type chaos struct {
	t   *testing.T
	dir string

	mu       sync.Mutex // guards the fields below
	claims   map[claim][]*attempt
	children []*chaosChild
	ended    bool

	started, killed, stopped, killedInside                  int
	acknowledged, refused, unknown, unknownApplied, resumed int

	wg sync.WaitGroup
}

type chaosChild struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stops  bool
	inside bool // it is stopped, and holds a lock
	gone   bool
}

// start starts a process, and records its output.
func (c *chaos) start(stops bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	exe, err := os.Executable()
	if err != nil {
		c.t.Error(err)
		return
	}
	c.started++
	cmd := exec.Command(exe)
	role := "count"
	if stops {
		role = "count and stop"
	}
	cmd.Env = append(os.Environ(), childEnv+"="+role, "FIRN_DIRSTORE_DIR="+c.dir, fmt.Sprintf("FIRN_DIRSTORE_NAME=p%d", c.started))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		c.t.Error(err)
		return
	}
	child := &chaosChild{cmd: cmd, stdin: stdin, stops: stops}
	c.children = append(c.children, child)
	c.wg.Go(func() {
		c.listen(child, stdout)
		_ = cmd.Wait() // it was killed
		c.mu.Lock()
		child.gone = true
		c.mu.Unlock()
		c.start(stops)
	})
}

// listen records the output of a process until it ends. A line that it wrote
// before it was killed can still be read.
func (c *chaos) listen(child *chaosChild, stdout io.Reader) {
	var current *attempt
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		word := strings.Fields(lines.Text())
		c.mu.Lock()
		switch {
		case len(word) == 4 && word[0] == "try":
			n, _ := strconv.Atoi(word[2])
			current = &attempt{by: word[3], outcome: "try"}
			at := claim{word[1], n}
			c.claims[at] = append(c.claims[at], current)
		case len(word) == 1 && (word[0] == "ok" || word[0] == "no" || word[0] == "unknown"):
			current.outcome = word[0]
		case len(word) == 3 && word[0] == "inside":
			n, _ := strconv.Atoi(word[2])
			child.inside = true
			c.stopped++
			c.wg.Go(func() { c.waitInside(child, claim{word[1], n}) })
		default:
			c.t.Errorf("a process says %q", lines.Text())
		}
		c.mu.Unlock()
	}
}

// waitInside lets a process that has stopped inside its lock stay there for a
// while, and checks that no other process can use that key, while another key
// can be used. Then the process continues, or is killed on the spot.
func (c *chaos) waitInside(child *chaosChild, at claim) {
	before := c.count()
	others := 0 // increments of other keys
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond || others == 0 && time.Since(begin) < 10*time.Minute; {
		time.Sleep(50 * time.Millisecond)
		others = 0
		for key, n := range c.count() {
			if key != at.key {
				others += n - before[key]
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.countLocked()[at.key]; n > at.n {
		c.t.Errorf("key %s continues to %d while a process has stopped inside its lock, after %d", at.key, n, at.n)
	}
	if others == 0 && !c.ended {
		c.t.Errorf("no other key continues while a process has stopped inside the lock of %s", at.key)
	}
	child.inside = false
	if child.gone || c.ended {
		return
	}
	if c.stopped%2 == 0 {
		c.killedInside++
		_ = child.cmd.Process.Kill()
		return
	}
	c.resumed++
	_ = child.cmd.Process.Signal(syscall.SIGCONT)
}

// count returns the greatest acknowledged number of each key.
func (c *chaos) count() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.countLocked()
}

func (c *chaos) countLocked() map[string]int {
	greatest := make(map[string]int)
	for at, attempts := range c.claims {
		for _, a := range attempts {
			if a.outcome == "ok" {
				greatest[at.key] = max(greatest[at.key], at.n)
			}
		}
	}
	return greatest
}

// killOne kills one of the counting processes, but not the one that stops
// inside its lock.
func (c *chaos) killOne() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range rand.Perm(len(c.children)) {
		child := c.children[i]
		if !child.gone && !child.stops {
			c.killed++
			_ = child.cmd.Process.Kill()
			return
		}
	}
}

// end kills the remaining processes, and waits until their output is recorded.
func (c *chaos) end() {
	c.mu.Lock()
	c.ended = true
	for _, child := range c.children {
		if !child.gone {
			_ = child.cmd.Process.Kill()
		}
	}
	c.mu.Unlock()
	c.wg.Wait()
}

// verify compares the output of the processes with the stored values.
func (c *chaos) verify(s *store) {
	final := make(map[string]int)
	for _, key := range chaosKeys {
		v, err := s.Get(context.Background(), key)
		if err != nil {
			c.t.Error(err)
			return
		}
		n, by := chaosValue(v)
		final[key] = n
		found := false
		for _, a := range c.claims[claim{key, n}] {
			found = found || a.by == by && a.outcome != "no"
		}
		if !found {
			c.t.Errorf("key %s has the value %q, and nobody has written that", key, v)
		}
		for i := 1; i <= n; i++ {
			attempts := c.claims[claim{key, i}]
			owners, maybe := 0, 0
			for _, a := range attempts {
				switch a.outcome {
				case "ok":
					owners++
				case "try", "unknown":
					maybe++
				}
			}
			if owners > 1 {
				c.t.Errorf("key %s: number %d was acknowledged to %d processes", key, i, owners)
			}
			if owners == 0 && maybe == 0 {
				c.t.Errorf("key %s: number %d was taken, and nobody has done it", key, i)
			}
			if owners == 0 {
				c.unknownApplied++
			}
		}
	}
	for at, attempts := range c.claims {
		for _, a := range attempts {
			switch a.outcome {
			case "ok":
				c.acknowledged++
				if at.n > final[at.key] {
					c.t.Errorf("key %s ends at %d, and number %d was acknowledged", at.key, final[at.key], at.n)
				}
			case "no":
				c.refused++
			default:
				c.unknown++
			}
		}
	}
	if c.acknowledged == 0 || c.stopped == 0 {
		c.t.Errorf("%d increments and %d stops, want some", c.acknowledged, c.stopped)
	}
}

// chaosValue parses a counter's value.
func chaosValue(v []byte) (n int, by string) {
	text, by, _ := strings.Cut(string(v), " ")
	n, _ = strconv.Atoi(text)
	return n, by
}

// count is the program of a process: it raises counters, and reports each CAS
// before and after, with its result. A line is one write to a pipe, so it is
// complete or absent.
func count(stops bool) error {
	go func() { // do not outlive the parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	s, err := openStore(os.Getenv("FIRN_DIRSTORE_DIR"), &Options{AllowVolatile: true})
	if err != nil {
		return err
	}
	var stopping *stoppingDisk
	if stops {
		stopping = &stoppingDisk{disk: s.disk}
		s.disk = stopping
	}
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		key := chaosKeys[rand.IntN(len(chaosKeys))]
		now, err := s.Get(ctx, key)
		if err != nil {
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				continue // a process has stopped
			}
			return err
		}
		n, _ := chaosValue(now)
		by := fmt.Sprintf("%s-%d", os.Getenv("FIRN_DIRSTORE_NAME"), i)
		fmt.Fprintf(os.Stdout, "try %s %d %s\n", key, n+1, by)
		if stopping != nil && i%40 == 20 {
			stopping.armed = true
		}
		ok, err := s.CAS(ctx, key, now, fmt.Appendf(nil, "%d %s", n+1, by))
		cancel()
		outcome := "no"
		switch {
		case ok:
			outcome = "ok"
		case errors.Is(err, grant.ErrNotSent) && errors.Is(err, context.DeadlineExceeded), err == nil:
		case errors.Is(err, grant.ErrNotSent):
			return err
		default:
			outcome = "unknown"
		}
		fmt.Fprintln(os.Stdout, outcome)
	}
}

// A stoppingDisk stops its own process when it is armed, at the worst moment:
// the lock is held, and the new record is visible but not yet durable.
type stoppingDisk struct {
	disk
	armed  bool
	record string // the last file that was put in place
}

func (d *stoppingDisk) rename(from, to string) error {
	d.record = to
	return d.disk.rename(from, to)
}

func (d *stoppingDisk) directory() (file, error) {
	f, err := d.disk.directory()
	return &stoppingFile{f, d}, err
}

type stoppingFile struct {
	file
	disk *stoppingDisk
}

func (f *stoppingFile) Sync() error {
	if f.disk.armed {
		f.disk.armed = false
		data, _, err := f.disk.read(f.disk.record)
		if err != nil {
			return err
		}
		key, v, err := decodeRecord(data)
		if err != nil {
			return err
		}
		n, _ := chaosValue(v)
		fmt.Fprintf(os.Stdout, "inside %s %d\n", key, n)
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond) // another thread may get the signal first
	}
	return f.file.Sync()
}
