// Command mutate changes the code in many small ways, one at a time, and runs
// the tests that reach the change. Such a change is a mutant, and a test must
// fail for each. A mutant that survives either shows a gap in the tests or is
// equivalent to the original code. A file explains the survivors, and a missing
// explanation is a failure.
//
//	mutate [flags] package...
//
// All mutants are compiled into the test programs at once, through an overlay,
// so the source tree is never edited, and an environment variable enables one
// of them. A first run of each test by itself, without mutants, measures which
// mutants it reaches and how long it takes.
//
// The order of the mutants is fixed but pseudorandom, so that any part of them
// is a fair sample. With -time, the next run continues after the last mutant of
// this one.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.tests, "tests", "", "packages whose tests are run, separated by spaces; the changed ones if empty")
	flag.StringVar(&o.skip, "skip", "", "skip tests that match a regular expression")
	flag.StringVar(&o.survivors, "survivors", "", "file that explains the mutants which survive")
	flag.StringVar(&o.dir, "dir", "build/mutate", "directory for everything that is written")
	flag.StringVar(&o.only, "only", "", "test only the mutants that match a regular expression")
	flag.BoolVar(&o.again, "again", false, "skip mutants that a test has already caught")
	flag.BoolVar(&o.list, "list", false, "list the mutants without testing them")
	flag.DurationVar(&o.time, "time", 0, "start no more mutants after this time; the next run continues there")
	flag.IntVar(&o.parallel, "parallel", max(1, runtime.NumCPU()/2), "number of mutants tested at the same time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	tests, skip, survivors, dir, only string
	again, list                       bool
	time                              time.Duration
	parallel                          int
}

// An outcome is the result of testing a mutant.
type outcome struct {
	Mutant  string
	Line    int
	Result  string  // caught, timeout, survived or unreached
	By      string  `json:",omitempty"` // the test that failed
	Seconds float64 `json:",omitempty"`
}

func (o outcome) survived() bool { return o.Result == "survived" || o.Result == "unreached" }

func (o options) run(ctx context.Context, patterns []string) error {
	if len(patterns) == 0 {
		return errors.New("no packages; name those to change, such as ./grant")
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	for _, sub := range []string{"source", "tmp"} {
		if err := errors.Join(os.RemoveAll(filepath.Join(o.dir, sub)), os.MkdirAll(filepath.Join(o.dir, sub), 0o755)); err != nil {
			return err
		}
	}
	mutants, replace, err := instrument(root, filepath.Join(o.dir, "source"), patterns)
	if err != nil {
		return err
	}
	slices.SortFunc(mutants, func(a, b mutant) int { return cmp.Compare(order(a.Key), order(b.Key)) })
	explained, err := readSurvivors(o.survivors)
	if err != nil {
		return err
	}
	chosen, err := o.choose(mutants)
	if err != nil {
		return err
	}
	if o.list {
		slices.SortFunc(chosen, func(a, b mutant) int { return cmp.Compare(a.ID, b.ID) })
		for _, m := range chosen {
			fmt.Printf("%d\t%s\n", m.Line, m.Key)
		}
		return nil
	}
	s, err := o.suite(ctx, root, replace, patterns)
	if err != nil {
		return err
	}
	fmt.Printf("mutate: %d mutants, %d to be tested by %d tests\n", len(mutants), len(chosen), len(s.tests))
	outcomes := o.testAll(ctx, s, chosen, explained)
	if err := o.save(outcomes); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return report(os.Stdout, o.survivors, mutants, outcomes, explained)
}

// order returns the position of a mutant among all: it is the same in every
// run, even after other code has changed.
func order(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// choose returns the mutants that this run may test, in order.
func (o options) choose(mutants []mutant) ([]mutant, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, err
	}
	done := make(map[string]bool)
	if o.again {
		var last []outcome
		b, err := os.ReadFile(o.file("results.json"))
		if err == nil {
			err = json.Unmarshal(b, &last)
		}
		if err != nil {
			return nil, fmt.Errorf("read earlier results: %w", err)
		}
		for _, out := range last {
			done[out.Mutant] = out.Result == "caught" // not if the time limit caught it: the machine may have been busy
		}
	}
	var chosen []mutant
	for _, m := range mutants {
		if only.MatchString(m.Key) && !(o.again && done[m.Key]) {
			chosen = append(chosen, m)
		}
	}
	if o.time > 0 {
		last, _ := os.ReadFile(o.file("last"))
		i, _ := slices.BinarySearchFunc(chosen, string(last), func(m mutant, last string) int { return cmp.Compare(order(m.Key), last) })
		if i < len(chosen) && order(chosen[i].Key) == string(last) {
			i++
		}
		chosen = slices.Concat(chosen[i:], chosen[:i])
	}
	return chosen, nil
}

func (o options) file(name string) string { return filepath.Join(o.dir, name) }

// testAll tests mutants in order until the time has passed. It records the last
// one for the next run.
func (o options) testAll(ctx context.Context, s *suite, mutants []mutant, explained explanations) []outcome {
	outcomes := make([]outcome, len(mutants))
	began := time.Now()
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, o.parallel) {
		workers.Go(func() {
			for i := range next {
				outcomes[i] = s.test(ctx, mutants[i], explained.of(mutants[i].Key) != "")
			}
		})
	}
	done := 0
	for ; done < len(mutants) && ctx.Err() == nil && (o.time == 0 || done == 0 || time.Since(began) < o.time); done++ {
		next <- done
		if done > 0 && done%100 == 0 {
			fmt.Printf("mutate: %d in %v\n", done, time.Since(began).Round(time.Second))
		}
	}
	close(next)
	workers.Wait()
	if o.time > 0 && done > 0 && ctx.Err() == nil {
		if err := os.WriteFile(o.file("last"), []byte(order(mutants[done-1].Key)), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "mutate: the next run tests the same mutants:", err)
		}
	}
	return slices.DeleteFunc(outcomes, func(out outcome) bool { return out.Result == "" })
}

// save adds outcomes to those recorded earlier.
func (o options) save(outcomes []outcome) error {
	var all []outcome
	if b, err := os.ReadFile(o.file("results.json")); err == nil && (o.again || o.only != "" || o.time > 0) {
		_ = json.Unmarshal(b, &all) // from another version: start over
	}
	isNew := make(map[string]bool)
	for _, out := range outcomes {
		isNew[out.Mutant] = true
	}
	all = slices.DeleteFunc(all, func(out outcome) bool { return isNew[out.Mutant] })
	all = append(all, outcomes...)
	slices.SortFunc(all, func(a, b outcome) int { return strings.Compare(a.Mutant, b.Mutant) })
	b, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(o.file("results.json"), b, 0o644)
}
