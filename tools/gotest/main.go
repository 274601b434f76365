// Gotest runs go test in a module and prints the part for people: the closing
// line of each package, the output of failed tests and of the compiler, and
// nothing of tests that passed. It exits with 1 if go test fails.
//
//	gotest LOG FACTS MODULE ARGUMENTS…
//
// LOG receives the full output. FACTS receives these lines, for scripts/test.sh
// to sum up:
//
//	vectors FILE ROWS        a test wrote "vectors: FILE ROWS rows"
//	report TEXT              a test wrote "report: TEXT" or, for vectors that
//	                         are not read yet, "vectors: FILE 0 of ROWS rows: REASON"
//	slow NAME SECONDS        a test took long
//	skipped NAME: REASON
//	count PASSED FAILED SKIPPED
//
// A test writes such a line with t.Log, t.Output or fmt.Println.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
)

// An event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

var (
	place  = regexp.MustCompile(`^ *(\w+\.go:\d+: )?`)
	rows   = regexp.MustCompile(`^vectors: (\S+ \d+) rows`)
	report = regexp.MustCompile(`^(?:report: (.*)|vectors: \S+ 0 of \d+ rows.*)`)
	// frame is what package testing and the go command write themselves.
	frame = regexp.MustCompile(`^( *--- (PASS|SKIP): |=== |(PASS|FAIL|exit status 1)\n$)`)
)

func main() {
	log.SetFlags(0)
	full, err := os.Create(os.Args[1])
	check(err)
	facts, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	check(err)
	c := exec.Command("go", append([]string{"test", "-C", os.Args[3], "-json", "-count=1"}, os.Args[4:]...)...)
	both := io.MultiWriter(os.Stdout, full)
	c.Stderr = both
	stream, err := c.StdoutPipe()
	check(err)
	check(c.Start())
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // go test ends, and then this

	packages := make(map[string][]event) // until they end
	count := make(map[string]int)        // of tests that are not part of others, by result
	for lines := json.NewDecoder(stream); lines.More(); {
		var e event
		check(lines.Decode(&e))
		if e.Package == "" { // the compiler
			io.WriteString(both, e.Output)
			continue
		}
		packages[e.Package] = append(packages[e.Package], e)
		if e.Test == "" && strings.Contains("pass fail skip", e.Action) {
			sum(facts, full, count, packages[e.Package])
			delete(packages, e.Package)
		}
	}
	for _, events := range packages {
		sum(facts, full, count, events) // go test was killed
	}
	fmt.Fprintln(facts, "count", count["pass"], count["fail"], count["skip"])
	check(c.Wait())
}

// sum adds what the tests of a package did to the facts, the full output and
// the count, and prints what people need to see.
func sum(facts, full io.Writer, count map[string]int, events []event) {
	var tests []string // in order; the first is the package itself
	said := make(map[string]string)
	last := make(map[string]string)  // the last line of a test
	state := make(map[string]string) // its last action
	before := count["fail"]
	for _, e := range events {
		io.WriteString(full, e.Output)
		line := strings.TrimSpace(place.ReplaceAllString(e.Output, ""))
		if e.Action == "output" {
			if m := rows.FindStringSubmatch(line); m != nil {
				fmt.Fprintln(facts, "vectors", m[1])
			} else if m := report.FindStringSubmatch(line); m != nil {
				fmt.Fprintln(facts, "report", cmp.Or(m[1], m[0]))
			}
			if !frame.MatchString(e.Output) {
				said[e.Test] += e.Output
				last[e.Test] = line
			}
			continue
		}
		if state[e.Test] == "" {
			tests = append(tests, e.Test)
		}
		state[e.Test] = e.Action
		if e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		count[e.Action]++
		if e.Elapsed >= 20 {
			fmt.Fprintln(facts, "slow", e.Test, e.Elapsed)
		}
		if e.Action == "skip" {
			fmt.Fprintf(facts, "skipped %s: %s\n", e.Test, cmp.Or(last[e.Test], "no reason given"))
		}
	}
	if state[""] == "pass" || state[""] == "skip" {
		fmt.Println(last[""]) // the closing line
		return
	}
	if count["fail"] == before {
		count["fail"]++ // it does not compile, or crashed
	}
	for _, test := range tests[1:] {
		switch state[test] {
		case "pass", "skip", "pause":
		case "fail":
			fmt.Print(said[test])
		default:
			fmt.Printf("--- NOT ENDED: %s\n%s", test, said[test])
		}
	}
	fmt.Print(said[""])
}

func check(err error) {
	if err != nil {
		log.Fatal("gotest: ", err)
	}
}
