//go:build unix

package conformance

import (
	"bufio"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A language is a client with its driver.
type language struct {
	name    string
	command func(t *testing.T) []string // skips the test if the driver cannot run
}

var languages = []language{
	{"python", func(t *testing.T) []string { return pythonDriver(t) }},
	{"go", func(t *testing.T) []string { return []string{must.Get(os.Executable())(t), goDriver} }},
	{"asyncio", func(t *testing.T) []string { return append(pythonDriver(t), "--aio") }},
	{"typescript", func(t *testing.T) []string {
		needProgram(t, "typescript", "node", "npm")
		needFile(t, "typescript", "conformance/driver.mjs")
		err := buildTypeScript()
		if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 3 {
			t.Skip(err)
		}
		must.Do(t, err)
		return []string{"node", filepath.Join(root, "build/typescript/conformance/driver.mjs")}
	}},
	{"java", func(t *testing.T) []string {
		needProgram(t, "java", "javac", "java")
		needFile(t, "java", "conformance/Driver.java")
		classes := must.Get(compileJava())(t)
		return []string{"java", "-cp", classes, "Driver"}
	}},
}

// eachLanguage runs a test for each client that this machine can run.
func eachLanguage(t *testing.T, test func(t *testing.T, l language)) {
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) { test(t, l) })
	}
}

const root = "../../../.." // of the repository

func needProgram(t *testing.T, sdk string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("skipped sdk/%s: no %s here", sdk, name)
		}
	}
}

func needFile(t *testing.T, sdk, name string) string {
	t.Helper()
	path := must.Get(filepath.Abs(filepath.Join(root, "sdk", sdk, name)))(t)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped sdk/%s: no %s", sdk, name)
	}
	return path
}

func pythonDriver(t *testing.T) []string {
	t.Helper()
	needProgram(t, "python", "python3")
	if exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run() != nil {
		t.Skip("skipped sdk/python: no Python 3.10 or newer here")
	}
	return []string{"python3", needFile(t, "python", "conformance/driver.py")}
}

// temporary has what is built once for all tests.
var temporary string

var compileJava = sync.OnceValues(func() (string, error) {
	sources := []string{filepath.Join(root, "sdk/java/conformance/Driver.java")}
	err := filepath.WalkDir(filepath.Join(root, "sdk/java/src/main/java"), func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".java") && d.Name() != "module-info.java" {
			sources = append(sources, path)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	classes := filepath.Join(temporary, "java")
	out, err := exec.Command("javac", append([]string{"-nowarn", "-d", classes}, sources...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return classes, nil
})

// buildTypeScript takes minutes on a slow machine, more than a call may.
var buildTypeScript = sync.OnceValue(func() error {
	out, err := exec.Command("sh", filepath.Join(root, "sdk/typescript/prepare.sh")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("prepare.sh: %w\n%s", err, out)
	}
	return nil
})

// A driver is a running client.
type driver struct {
	t     *testing.T
	name  string
	in    io.WriteCloser
	lines chan string
	log   *nettest.Output
}

// start starts a driver, and ends it with the test.
func (l language) start(t *testing.T, servers []string, args ...string) *driver {
	t.Helper()
	command := l.command(t)
	cmd := exec.Command(command[0], append(command[1:], append([]string{"--servers", strings.Join(servers, ","), "--sequencer", "orders"}, args...)...)...)
	log := new(nettest.Output)
	cmd.Stderr = log
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	d := &driver{t, l.name, in, make(chan string), log}
	go func() {
		defer close(d.lines)
		all := bufio.NewReader(out)
		for {
			line, err := all.ReadString('\n')
			if err != nil {
				return
			}
			d.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		for range d.lines {
		}
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: the driver printed:\n%s", l.name, log)
		}
	})
	return d
}

// ask sends a command and returns the answer. It may be called in a goroutine.
func (d *driver) ask(format string, a ...any) string {
	command := fmt.Sprintf(format, a...)
	if _, err := io.WriteString(d.in, command+"\n"); err != nil {
		return fmt.Sprintf("the driver has ended: %v", err)
	}
	select {
	case line, open := <-d.lines:
		if !open {
			return "the driver has ended"
		}
		return line
	case <-time.After(must.Patience):
		return "no answer"
	}
}

// ok sends a command that must succeed, and returns what follows ok.
func (d *driver) ok(format string, a ...any) string {
	d.t.Helper()
	answer := d.ask(format, a...)
	rest, ok := strings.CutPrefix(answer, "ok")
	if !ok {
		d.t.Fatalf("%s: %s: %s, want ok", d.name, fmt.Sprintf(format, a...), answer)
	}
	return strings.TrimSpace(rest)
}

// ids sends a command that is answered with n IDs.
func (d *driver) ids(command string, n int) []firn.ID {
	d.t.Helper()
	var all []firn.ID
	for text := range strings.FieldsSeq(d.ok("%s %d", command, n)) {
		id, err := firn.ParseID(text)
		if err != nil {
			d.t.Fatalf("%s: %s %d: %v", d.name, command, n, err)
		}
		all = append(all, id)
	}
	if len(all) != n {
		d.t.Fatalf("%s: %s %d gave %d IDs", d.name, command, n, len(all))
	}
	return all
}

// during does something while 4 threads draw, n IDs each at least, and until it
// is done. It returns the IDs.
func (d *driver) during(n int, do func()) (all []firn.ID) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "ids")
	var done atomic.Bool
	drawn := make(chan error)
	slowest := 0.0
	go func() {
		defer close(drawn)
		for again := true; again; {
			again = !done.Load()
			answer := d.ask("burst %d 4 %s", n, file)
			longest, err := strconv.ParseFloat(strings.TrimPrefix(answer, "ok "), 64)
			if err != nil {
				drawn <- fmt.Errorf("burst: %s, want ok", answer)
				return
			}
			ids, err := readIDs(file)
			if len(ids) != 4*n || err != nil {
				drawn <- fmt.Errorf("burst: %d IDs, want %d: %v", len(ids), 4*n, err)
				return
			}
			slowest, all = max(slowest, longest), append(all, ids...)
		}
	}()
	do()
	done.Store(true)
	if err := <-drawn; err != nil {
		d.t.Fatalf("%s: %v", d.name, err)
	}
	d.t.Logf("%s: %d IDs, the longest call took %.3f ms", d.name, len(all), slowest)
	return all
}

func readIDs(file string) ([]firn.ID, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(data)%8 != 0 {
		return nil, fmt.Errorf("%d bytes are not 64-bit IDs", len(data))
	}
	all := make([]firn.ID, len(data)/8)
	for i := range all {
		all[i] = firn.ID(binary.BigEndian.Uint64(data[8*i:]))
	}
	return all, nil
}

// wantDistinct fails the test if an ID occurs twice.
func wantDistinct(t *testing.T, all []firn.ID) {
	t.Helper()
	slices.Sort(all)
	for i, id := range all {
		if id == 0 || i > 0 && id == all[i-1] {
			t.Fatalf("the ID %v was handed out twice, or is never made", id)
		}
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == goDriver {
		driveGo(os.Args[2:])
		return
	}
	var err error
	if temporary, err = os.MkdirTemp("", "conformance"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = flag.Set("test.parallel", "4") // tests mostly wait
	code := m.Run()
	os.RemoveAll(temporary)
	os.Exit(code)
}
