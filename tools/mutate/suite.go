package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A test is one test function.
type test struct {
	Dir     string // of its package
	Program string
	Name    string
	Seconds float64 // of processor time, without a mutant
	Reaches []int   // mutants
}

// A suite is the tests that try to catch mutants.
type suite struct {
	tmp     string
	tests   []*test
	reached map[int][]*test // the fastest first
}

// A batch is a set of tests of a program that run in one process.
type batch struct {
	first   *test
	names   []string
	seconds float64
}

// In seconds of processor time: how long the tests of a batch may take
// together, and the time from which a test is slow.
const quick, slow = 1, 2

// suite builds the test programs with all mutants, and measures what each test
// reaches, unless that is known from an earlier run of the same programs.
func (o options) suite(ctx context.Context, root string, replace map[string]string, patterns []string) (*suite, error) {
	if o.tests != "" {
		patterns = strings.Fields(o.tests)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := o.file("overlay.json")
	if err := os.WriteFile(overlay, b, 0o644); err != nil {
		return nil, err
	}
	dirs, err := output(ctx, root, "go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	skip, err := regexp.Compile(o.skip)
	if err != nil {
		return nil, err
	}
	s := &suite{tmp: o.file("tmp"), reached: make(map[int][]*test)}
	known := make(map[string][]*test) // by the hash of their program
	if b, err := os.ReadFile(o.file("reached.json")); err == nil {
		_ = json.Unmarshal(b, &known) // from another version: measure again
	}
	now := make(map[string][]*test)
	for i, dir := range strings.Fields(dirs) {
		program := o.file(fmt.Sprintf("%d-%s.test", i, filepath.Base(dir)))
		if _, err := output(ctx, dir, "go", "test", "-c", "-vet=off", "-trimpath", "-buildvcs=false", "-overlay", overlay, "-o", program, "."); err != nil {
			return nil, err
		}
		b, err := os.ReadFile(program)
		if err != nil {
			return nil, err // for example, no test files
		}
		sum := sha256.Sum256(b)
		key := filepath.Base(program) + " " + hex.EncodeToString(sum[:])
		names, err := output(ctx, dir, program, "-test.list", ".")
		if err != nil {
			return nil, err
		}
		now[key] = known[key]
		for _, name := range strings.Fields(names) {
			if strings.HasPrefix(name, "Benchmark") || o.skip != "" && skip.MatchString(name) {
				continue
			}
			i := slices.IndexFunc(now[key], func(t *test) bool { return t.Name == name })
			if i < 0 {
				t, err := s.measure(ctx, &test{Dir: dir, Program: program, Name: name})
				if err != nil {
					return nil, err
				}
				now[key] = append(now[key], t)
				i = len(now[key]) - 1
			}
			t := now[key][i]
			t.Dir, t.Program = dir, program // the results may come from another checkout
			s.tests = append(s.tests, t)
		}
	}
	if b, err = json.Marshal(now); err != nil {
		return nil, err
	}
	if err := os.WriteFile(o.file("reached.json"), b, 0o644); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.tests, func(a, b *test) int { return cmp.Compare(a.Seconds, b.Seconds) })
	for _, t := range s.tests {
		for _, id := range t.Reaches {
			s.reached[id] = append(s.reached[id], t)
		}
	}
	return s, nil
}

// measure runs a test by itself, without a mutant.
func (s *suite) measure(ctx context.Context, t *test) (*test, error) {
	trace := filepath.Join(s.tmp, "trace")
	if err := os.RemoveAll(trace); err != nil {
		return nil, err
	}
	r := s.exec(ctx, t.Dir, t.Program, "^"+t.Name+"$", 600, "MUTANT_TRACE="+trace)
	if !r.passed {
		return nil, fmt.Errorf("%s in %s fails without a mutant:\n%s", t.Name, t.Dir, r.text)
	}
	t.Seconds = r.seconds
	f, err := os.Open(trace)
	if err != nil {
		return t, nil // it reaches none
	}
	defer f.Close()
	seen := make(map[int]bool) // a test may start other processes
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if id, err := strconv.Atoi(lines.Text()); err == nil && !seen[id] {
			seen[id] = true
			t.Reaches = append(t.Reaches, id)
		}
	}
	return t, nil
}

// batches divides the tests that reach a mutant, the fast ones first, into
// processes. If brief is set, slow tests are omitted.
func (s *suite) batches(m mutant, brief bool) []*batch {
	var all []*batch
	together := make(map[string]*batch)
	for _, t := range s.reached[m.ID] {
		if brief && t.Seconds > slow {
			continue
		}
		b := together[t.Program]
		if b == nil || b.seconds+t.Seconds > quick {
			b = &batch{first: t}
			all, together[t.Program] = append(all, b), b
		}
		b.names, b.seconds = append(b.names, t.Name), b.seconds+t.Seconds
	}
	return all
}

// test runs the tests that reach a mutant until one fails. The result is empty
// if the context ends first. For a mutant that is explained, only brief tests
// run.
func (s *suite) test(ctx context.Context, m mutant, explained bool) outcome {
	out := outcome{Mutant: m.Key, Line: m.Line, Result: "unreached"}
	if len(s.reached[m.ID]) > 0 {
		out.Result = "survived"
	}
	for _, b := range s.batches(m, explained) {
		r := s.exec(ctx, b.first.Dir, b.first.Program, "^("+strings.Join(b.names, "|")+")$", 3+4*b.seconds, "MUTANT="+strconv.Itoa(m.ID))
		out.Seconds += r.seconds
		if ctx.Err() != nil {
			return outcome{}
		}
		if r.passed {
			continue
		}
		out.Result = "caught"
		in := filepath.Base(b.first.Dir)
		if _, failed, ok := strings.Cut(r.text, "--- FAIL: "); ok {
			out.By = in + "." + strings.Fields(failed)[0]
		} else if r.late {
			out.Result, out.By = "timeout", in
		} else {
			line, _, _ := strings.Cut(r.text, "\n")
			out.By = in + ": " + line
		}
		break
	}
	return out
}

// memory is how much address space, in KiB, a test may use if the system
// supports such a limit: a mutant may allocate without end.
const memory = 16 << 20

// A ran is the result of a process with tests.
type ran struct {
	passed, late bool
	text         string
	seconds      float64 // of processor time
}

// exec runs tests of one program, and kills all processes that they leave
// behind. The limit is in seconds of processor time, because other programs may
// use the machine too; a process that waits forever is killed after a multiple
// of it.
func (s *suite) exec(ctx context.Context, dir, program, run string, limit float64, env string) ran {
	tmp, err := os.MkdirTemp(s.tmp, "")
	if err != nil {
		return ran{text: err.Error()}
	}
	defer os.RemoveAll(tmp)
	timeout := time.Duration(20+4*limit) * time.Second
	ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `ulimit -v "$0" 2>/dev/null; ulimit -t "$1"; shift; exec "$@"`,
		strconv.Itoa(memory), strconv.Itoa(int(limit)), program,
		"-test.run", run, "-test.failfast", "-test.short", "-test.timeout", timeout.String())
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+tmp, env)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if cmd.Process == nil {
		return ran{text: err.Error()}
	}
	_ = kill()
	p := cmd.ProcessState
	return ran{
		passed: err == nil, text: text.String(), seconds: (p.UserTime() + p.SystemTime()).Seconds(),
		late: ctx.Err() != nil || strings.Contains(text.String(), "panic: test timed out") || strings.Contains(text.String(), "SIGXCPU"),
	}
}

// output runs a command and returns what it prints.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stderr.Bytes(), out)
	}
	return string(out), nil
}
