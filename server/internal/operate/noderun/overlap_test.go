//go:build unix

package noderun

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/internal/test/must"
)

// The test binary plays both sides: the supervisor, and the command that writes
// down which node ID it uses at which time.
const (
	modeVar  = "FIRN_TEST_NODERUN"
	dirVar   = "FIRN_TEST_NODERUN_DIR"
	clockVar = "FIRN_TEST_NODERUN_CLOCK" // a file with what is added to the machine's clock
	runVar   = "FIRN_TEST_NODERUN_RUN"   // a command for the supervisor, a word a line; this binary without it
)

func play(mode string) int {
	dir := os.Getenv(dirVar)
	now := func() time.Time {
		text, _ := os.ReadFile(os.Getenv(clockVar))
		offset, _ := time.ParseDuration(string(text))
		return time.Now().Round(0).Add(offset)
	}
	switch mode {
	case "command":
		return stamps(dir, now)
	case "supervisor":
		return supervise(dir, now)
	case "leaver":
		return leave()
	}
	return 99
}

// stamps writes the node ID and the time for ever, a line each.
func stamps(dir string, now func() time.Time) int {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("used-%d", os.Getpid())))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 98
	}
	for {
		if _, err := fmt.Fprintf(f, "%s %d\n", os.Getenv("NODE_ID"), now().UnixNano()); err != nil {
			return 97
		}
		time.Sleep(time.Millisecond)
	}
}

// leave ends in another group than that of the command, in which it leaves a
// process.
func leave() int {
	if err := exec.Command("sleep", "1000").Start(); err != nil {
		return 95
	}
	group, err := syscall.Getpgid(os.Getppid())
	if err != nil || syscall.Setpgid(0, group) != nil {
		return 94
	}
	return 6
}

// The windows of the test are short, and the machine may be slow.
const shortWindow, shortMargin = 4 * time.Second, 1600 * time.Millisecond

func supervise(dir string, now func() time.Time) int {
	store, err := dirstore.Open(context.Background(), filepath.Join(dir, "store"), &dirstore.Options{Create: true, AllowVolatile: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 96
	}
	defer func() { _ = store.Close() }()
	var command []Template
	for word := range strings.Lines(cmp.Or(os.Getenv(runVar), os.Args[0])) {
		t, _ := ParseTemplate(strings.TrimSuffix(word, "\n"))
		command = append(command, t)
	}
	value, _ := ParseTemplate("{node}")
	code, err := Run(context.Background(), Config{
		Store: store, Sequencer: DefaultSequencer, Window: shortWindow, Margin: shortMargin, Grace: shortMargin / 4,
		Command: command, Env: []Variable{{"NODE_ID", value}}, Environ: append(os.Environ(), modeVar+"=command"),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		MemberOptions: grant.MemberOptions{Nodes: &grant.NodeRange{Lo: 0, Hi: 3}, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Now: now},
	})
	fmt.Fprintln(os.Stderr, "ended", code, err)
	return code
}

// A use is when a command used a node ID, by the clock of its machine.
type use struct {
	node        uint64
	first, last int64
	file        string
	excused     bool // its supervisor did not run for longer than the margin, or its clock was set back to before its start
}

// TestNoOverlap: commands and supervisors are killed and stopped at random, on
// two machines whose clocks are 5 s apart and set back now and then. No node ID
// is used twice at one time, but by a command whose supervisor was stopped past
// the window, or whose clock was set back to before its start.
func TestNoOverlap(t *testing.T) {
	t.Parallel()
	lives := 18
	if os.Getenv("FIRN_SOAK") != "" {
		lives = 201
	}
	if testing.Short() {
		t.Skip("not with -short: it waits for windows to end")
	}
	dir := t.TempDir()
	var clocks []string
	for i, offset := range []string{"0s", "5s"} {
		clocks = append(clocks, filepath.Join(dir, fmt.Sprint("clock-", i)))
		must.Do(t, os.WriteFile(clocks[i], []byte(offset), 0o600))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	kinds := someLives(dir, clocks, lives, random)
	uses := readUses(t, dir)
	slices.SortFunc(uses, func(a, b use) int { return int(a.first - b.first) })
	excused := 0
	for i, a := range uses {
		for _, b := range uses[i+1:] {
			if a.node != b.node || b.first > a.last {
				continue
			}
			if a.excused || b.excused {
				excused++
				continue
			}
			t.Errorf("node %d: %s used it from %d to %d, %s from %d to %d", a.node, a.file, a.first, a.last, b.file, b.first, b.last)
		}
	}
	if len(uses) < lives/3 {
		t.Errorf("%d of %d commands used a node ID", len(uses), lives)
	}
	t.Logf("report: node run: %d lives, %v; %d commands used a node ID, no two the same at one time but %d by a stated exception", lives, kinds, len(uses), excused)
}

// someLives lets supervisors live, three at once for four node IDs, and counts
// how they ended.
func someLives(dir string, clocks []string, lives int, random *rand.Rand, environ ...string) map[string]int {
	const side = 3
	done := make(chan string)
	for range side {
		own := rand.New(rand.NewPCG(random.Uint64(), 2))
		go func() {
			for range lives / side {
				done <- oneLife(dir, clocks, own, environ)
			}
			done <- ""
		}()
	}
	kinds := make(map[string]int)
	for running := side; running > 0; {
		if what := <-done; what == "" {
			running--
		} else {
			kinds[what]++
		}
	}
	return kinds
}

// oneLife starts a supervisor and ends it, or its command, in some way.
func oneLife(dir string, clocks []string, random *rand.Rand, environ []string) (what string) {
	exe, _ := os.Executable()
	cmd := exec.Command(exe)
	own := clocks[random.IntN(len(clocks))]
	cmd.Env = append(append(os.Environ(), modeVar+"=supervisor", dirVar+"="+dir, clockVar+"="+own), environ...)
	log, err := os.CreateTemp(dir, "log-")
	if err != nil {
		return "not started"
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return "not started"
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	wait := func(d time.Duration) {
		select {
		case <-ended:
		case <-time.After(d):
		}
	}
	var pid int
	for used := false; !used; { // until the command uses its node ID
		select {
		case <-ended:
			return "ended by itself"
		case <-time.After(5 * time.Millisecond):
		}
		text, _ := os.ReadFile(log.Name())
		if _, rest, ok := bytes.Cut(text, []byte(" pid=")); ok {
			digits, _, _ := bytes.Cut(rest, []byte(" "))
			pid, _ = strconv.Atoi(string(digits))
			info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("used-%d", pid)))
			used = err == nil && info.Size() > 0
		}
	}
	wait(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
	switch random.IntN(6) {
	case 0:
		what = "command killed"
		_ = syscall.Kill(pid, syscall.SIGKILL)
	case 1:
		what = "supervisor killed"
		_ = cmd.Process.Kill()
	case 2:
		what = "supervisor stopped past its window"
		_ = cmd.Process.Signal(syscall.SIGSTOP)
		wait(shortWindow + time.Second)
		_ = cmd.Process.Signal(syscall.SIGCONT)
		wait(time.Second)
	case 3:
		what = "command stopped past its window"
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		wait(shortWindow + time.Second)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		wait(time.Second)
	case 4:
		what = "clock set back and forth"
		text, _ := os.ReadFile(own)
		offset, _ := time.ParseDuration(string(text))
		_ = os.WriteFile(own, []byte((offset - 800*time.Millisecond).String()), 0o600)
		wait(time.Second)
		_ = os.WriteFile(own, text, 0o600)
	default:
		what = "ended"
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	<-ended
	return what
}

// excused are the commands, by their process IDs, whose supervisors logged an
// exception.
func excused(t *testing.T, dir string) map[string]bool {
	late := make(map[string]bool)
	logs, _ := filepath.Glob(filepath.Join(dir, "log-*"))
	for _, name := range logs {
		text := must.Get(os.ReadFile(name))(t)
		if _, rest, ok := strings.Cut(string(text), " pid="); ok && (strings.Contains(string(text), "may have used its node ID after the window ended") || strings.Contains(string(text), "clock was set back to")) {
			pid, _, _ := strings.Cut(rest, " ")
			late[pid] = true
		}
	}
	return late
}

// readUses reads what the commands wrote.
func readUses(t *testing.T, dir string) (all []use) {
	late := excused(t, dir)
	files, _ := filepath.Glob(filepath.Join(dir, "used-*"))
	for _, name := range files {
		f := must.Get(os.Open(name))(t)
		s := use{file: filepath.Base(name), excused: late[strings.TrimPrefix(filepath.Base(name), "used-")]}
		for in := bufio.NewScanner(f); in.Scan(); {
			var node uint64
			var at int64
			if _, err := fmt.Sscanf(in.Text(), "%d %d", &node, &at); err != nil {
				continue // cut by a kill
			}
			if s.first == 0 {
				s.node, s.first, s.last = node, at, at
			}
			s.first, s.last = min(s.first, at), max(s.last, at)
		}
		_ = f.Close()
		if s.first != 0 {
			all = append(all, s)
		}
	}
	return all
}

// TestSupervisorKilled: on Linux the command ends with its supervisor.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "clock")
	must.Do(t, os.WriteFile(file, []byte("0s"), 0o600))
	exe := must.Get(os.Executable())(t)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), modeVar+"=supervisor", dirVar+"="+dir, clockVar+"="+file)
	must.Do(t, cmd.Start())
	pid := 0
	for pid == 0 {
		names, _ := filepath.Glob(filepath.Join(dir, "used-*"))
		if len(names) == 1 {
			pid, _ = strconv.Atoi(strings.TrimPrefix(filepath.Base(names[0]), "used-"))
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if runtime.GOOS != "linux" {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Skip("this system has no way to end a command with its supervisor")
	}
	for syscall.Kill(pid, 0) == nil {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(state), ") Z ") {
			return // it has ended, and its new parent does not care
		}
		time.Sleep(time.Millisecond)
	}
}

func pidOf(t *testing.T, file string) int {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
}
