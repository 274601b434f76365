package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // of scripts

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firnid/firn/grant/dirstore"
)

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv("FIRN_TEST_SERVE"); ok { // not by testscript, which leaves a directory when it is killed
		os.Args = append([]string{"firn"}, strings.Fields(args)...)
		main()
	}
	// The runtime's goroutine for signals must not begin in a synctest bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	testscript.Main(m, map[string]func(){"firn": func() {
		// The tests may themselves run in a container.
		os.Exit(execute(func() string { return os.Getenv(containerEnv) }, os.Getenv(machineEnv), clockOf(os.Getenv(clockEnv))))
	}})
}

// containerEnv says to a firn of a script by what it recognises a container.
const containerEnv = "FIRN_TEST_CONTAINER"

// machineEnv is the directory of the machine to a firn of a script.
const machineEnv = "FIRN_TEST_MACHINE"

// clockEnv is by how much the clock of a firn of a script is ahead, or the time
// at which the process starts by its clock, however long the script takes.
const clockEnv = "FIRN_TEST_CLOCK"

// clockOf returns the clock that clockEnv describes; nil for the system's.
func clockOf(text string) func() time.Time {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		text = time.Until(at).String()
	}
	ahead, err := time.ParseDuration(text)
	if err != nil {
		return nil
	}
	return func() time.Time { return time.Now().Round(0).Add(ahead) }
}

// TestScripts runs testdata/script: what is typed, and what must come of it.
// Beside the usual commands there is
//
//	exits CODE firn …   runs a program and wants that exit code
//	put KEY VALUE       writes a record past the protocol, into the store in $WORK/s
//	replace FILE OLD NEW   replaces a text in a file, which must be there
//
// and beside the usual conditions
//
//	[durable]   the scripts' directory will do for a store that must last
//	[root]      the scripts are run by root
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "America/St_Johns") // half hours show a time that is not in UTC
			// A store of its own for each script, wherever that may lie.
			e.Setenv(storeEnv, "dir:"+filepath.Join(e.WorkDir, "store")+"?create=true&volatile=true")
			// Under the race detector a process would sleep for a second
			// before it ends.
			e.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "root":
				return os.Geteuid() == 0, nil
			case "durable":
				s, err := dirstore.Open(t.Context(), filepath.Join(t.TempDir(), "store"), &dirstore.Options{Create: true})
				if err == nil {
					err = s.Close()
				}
				return err == nil, nil
			}
			return false, fmt.Errorf("there is no condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"put": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 2 {
					ts.Fatalf("usage: put KEY VALUE")
				}
				s, err := dirstore.Open(t.Context(), ts.MkAbs("s"), &dirstore.Options{AllowVolatile: true})
				ts.Check(err)
				defer s.Close()
				old, err := s.Get(t.Context(), args[0])
				ts.Check(err)
				ok, err := s.CAS(t.Context(), args[0], old, []byte(args[1]))
				ts.Check(err)
				if !ok {
					ts.Fatalf("the record %s was changed meanwhile", args[0])
				}
			},
			"replace": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 3 {
					ts.Fatalf("usage: replace FILE OLD NEW")
				}
				file := ts.MkAbs(args[0])
				text, err := os.ReadFile(file)
				ts.Check(err)
				if !strings.Contains(string(text), args[1]) {
					ts.Fatalf("%s has no %q: %s", args[0], args[1], text)
				}
				ts.Check(os.WriteFile(file, []byte(strings.Replace(string(text), args[1], args[2], 1)), 0o600))
			},
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT…]")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := 0
				err = ts.Exec(args[1], args[2:]...)
				if exit, ok := errors.AsType[*exec.ExitError](err); ok {
					got = exit.ExitCode()
				} else {
					ts.Check(err)
				}
				if got != want {
					ts.Fatalf("%s ends with %d, want %d", strings.Join(args[1:], " "), got, want)
				}
			},
		},
	})
}

// TestHelp wants a usage, an example and a group for every command, topics of
// the help aside.
func TestHelp(t *testing.T) {
	root := newRoot(&app{now: time.Now})
	for _, c := range root.Commands() {
		if c.Name() == "help" || c.Name() == "completion" || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if c.Short == "" || c.Example == "" || c.GroupID == "" {
			t.Errorf("firn %s has the short help %q, examples %q and group %q: none may be empty", c.Name(), c.Short, c.Example, c.GroupID)
		}
		for line := range strings.Lines(c.Example) {
			if !strings.HasPrefix(line, "  ") || !strings.Contains(line, "firn "+c.Name()) {
				t.Errorf("firn %s has an example that does not show it: %q", c.Name(), line)
			}
		}
		stdout, stderr, code := runFirn(t, c.Name(), "--help")
		if code != exitFine || stderr != "" || !strings.Contains(stdout, "Usage:\n  firn "+c.Name()) {
			t.Errorf("firn %s --help ends with %d: %s%s", c.Name(), code, stdout, stderr)
		}
		for line := range strings.Lines(stdout) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 135 {
				t.Errorf("firn %s --help has a line of %d characters: %s", c.Name(), n, line)
			}
		}
	}
}
