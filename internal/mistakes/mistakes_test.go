// Package mistakes shows that the tests of the library have teeth: it makes
// each of the mistakes in mistakes.txt, and expects certain tests to fail.
//
// The mistakes are not in the code. The test writes copies of the files with
// all mistakes in them, each behind a switch, and builds the tests once with
// these copies in place of the files (go build -overlay). The environment
// variable FIRN_MISTAKE names the mistake that such a build makes.
package mistakes

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

//go:embed mistakes.txt
var list string

// firstLine is the first message of a test that fails.
var firstLine = regexp.MustCompile(`(?m)^ +\w+_test\.go:\d+: .*$`)

// root is the directory that the paths in mistakes.txt start from.
const root = "../.."

// A mistake is one deliberate mistake.
type mistake struct {
	name  string
	tests [][2]string // the directory and the name of tests that must fail
	edits []edit
}

// An edit replaces a text that occurs once in a file.
type edit struct{ file, old, new string }

// mistakes reads mistakes.txt.
func mistakes(t *testing.T) (all []mistake) {
	var m *mistake
	var e *edit
	for line := range strings.Lines(list) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case word == "==":
			all = append(all, mistake{name: rest})
			m, e = &all[len(all)-1], nil
		case m == nil || word == "":
		case e != nil && strings.ContainsRune(" +-", rune(line[0])):
			if line[0] != '+' {
				e.old += line[1:]
			}
			if line[0] != '-' {
				e.new += strings.ReplaceAll(line[1:], "MISTAKE", fmt.Sprintf("(mistake == %q)", m.name))
			}
		case word == "in":
			m.edits = append(m.edits, edit{file: rest})
			e = &m.edits[len(m.edits)-1]
		case word == "test":
			dir, name, _ := strings.Cut(rest, " ")
			m.tests = append(m.tests, [2]string{dir, name})
		}
	}
	for _, m := range all {
		if len(m.tests) == 0 || len(m.edits) == 0 {
			t.Fatalf("the mistake %q has no test or no change", m.name)
		}
	}
	return all
}

// switches is the end of a file that each changed package has in addition.
const switches = `

import "os"

var mistake = os.Getenv("FIRN_MISTAKE")
`

// overlay writes copies of the files with all mistakes, and returns the file
// that tells the go command about them.
func overlay(t *testing.T, all []mistake) string {
	copies := make(map[string]string) // their text, by file
	for _, m := range all {
		for _, e := range m.edits {
			text, ok := copies[e.file]
			if !ok {
				text = readFile(t, filepath.Join(root, e.file))
			}
			if n := strings.Count(text, e.old); n != 1 {
				t.Errorf("the mistake %q changes a text that occurs %d times in %s:\n%s", m.name, n, e.file, e.old)
				continue
			}
			copies[e.file] = strings.Replace(text, e.old, e.new, 1)
			pkg := regexp.MustCompile(`(?m)^package (\w+)$`).FindString(text)
			copies[filepath.Join(filepath.Dir(e.file), "zmistake.go")] = pkg + switches
		}
	}
	dir := t.TempDir()
	replace := make(map[string]string)
	for i, file := range slices.Sorted(maps.Keys(copies)) {
		path := must.Get(filepath.Abs(filepath.Join(root, file)))(t)
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		writeFile(t, replace[path], copies[file])
	}
	text := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	name := filepath.Join(dir, "overlay.json")
	writeFile(t, name, string(text))
	return name
}

// TestMistakes makes one mistake at a time, and expects the tests of its row to
// fail.
func TestMistakes(t *testing.T) {
	all := mistakes(t)
	files := overlay(t, all)
	if t.Failed() {
		return
	}
	if os.Getenv("FIRN_ALL") == "" && os.Getenv("FIRN_SOAK") == "" {
		t.Skip("it takes long: make test-all runs it, or FIRN_ALL=1")
	}
	programs := make(map[string]string) // the tests of a directory
	called := make(map[string][]string) // those that are run
	for _, m := range all {
		for _, test := range m.tests {
			dir := test[0]
			name, _, _ := strings.Cut(test[1], "/")
			called[dir] = append(called[dir], name)
			if programs[dir] != "" {
				continue
			}
			programs[dir] = filepath.Join(t.TempDir(), "tests.exe")
			build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", files, "-o", programs[dir], ".")
			build.Dir = filepath.Join(root, dir)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v:\n%s", build, err, out)
			}
		}
	}
	// run returns the output of tests in a build that makes a mistake, or none.
	run := func(t *testing.T, dir, pattern, name string) (string, error) {
		c := exec.CommandContext(t.Context(), programs[dir], "-test.run="+pattern, "-test.timeout=20m")
		c.Dir = filepath.Join(root, dir)
		c.Env = append(os.Environ(), "FIRN_MISTAKE="+name, "FIRN_ALL=", "FIRN_SOAK=")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, m := range all {
		for _, test := range m.tests {
			parts := strings.Split(test[1], "/")
			for i, part := range parts {
				parts[i] = "^" + regexp.QuoteMeta(part) + "$"
			}
			t.Run(m.name+", "+test[1], func(t *testing.T) {
				t.Parallel()
				out, err := run(t, test[0], strings.Join(parts, "/"), m.name)
				switch {
				case err == nil:
					t.Errorf("%s does not notice the mistake:\n%s", test[1], out)
				case strings.Contains(out, "panic: test timed out"), strings.Contains(out, "setup: "): // of TestHistoric
					t.Errorf("%s cannot tell:\n%s", test[1], out)
				default:
					t.Log(strings.TrimSpace(firstLine.FindString(out)))
				}
			})
		}
	}
	for dir, names := range called {
		t.Run("none, in "+dir, func(t *testing.T) {
			t.Parallel()
			if out, err := run(t, dir, "^("+strings.Join(names, "|")+")$", ""); err != nil {
				t.Errorf("without a mistake: %v:\n%s", err, out)
			}
		})
	}
	t.Logf("report: mistakes: %d made, each noticed by the tests of its row", len(all))
}

// TestPage: docs/protocol.md names the mistakes in the protocol, clause by
// clause, and no others.
func TestPage(t *testing.T) {
	page := readFile(t, filepath.Join(root, "docs/protocol.md"))
	_, argument, _ := strings.Cut(page, "\n## Why IDs are unique\n")
	_, clauses, _ := strings.Cut(argument, "\n### Mistakes, clause by clause\n")
	clauses, _, _ = strings.Cut(clauses, "\n## ")
	var known []string
	for _, m := range mistakes(t) {
		known = append(known, m.name)
		inProtocol := slices.ContainsFunc(m.edits, func(e edit) bool {
			return filepath.Dir(e.file) == "grant" && e.file != "grant/sim_historic_test.go"
		})
		if inProtocol && !strings.Contains(clauses, `"`+m.name+`"`) {
			t.Errorf("no clause is said to be broken by the mistake %q", m.name)
		}
	}
	named := clauses
	for _, m := range regexp.MustCompile(`Simulator:\s((?:"[^"]*"[,.]\s)+)`).FindAllStringSubmatch(argument, -1) {
		named += m[1]
	}
	for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(named, -1) {
		if name := strings.Join(strings.Fields(m[1]), " "); !slices.Contains(known, name) {
			t.Errorf("the page names the mistake %q, which is not made", name)
		}
	}
}

func readFile(t *testing.T, name string) string {
	return string(must.Get(os.ReadFile(name))(t))
}

func writeFile(t *testing.T, name, text string) {
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
}
