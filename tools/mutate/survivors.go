package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// readSurvivors reads the file that explains survivors: mutants, a line each,
// then indented lines with the reason that holds for all of them. A reason that
// begins with "Open:" says that it is not known yet. Lines that begin with # are
// comments.
func readSurvivors(file string) (map[string]string, error) {
	explained := make(map[string]string)
	if file == "" {
		return explained, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var open []string // mutants that wait for their reason
	hasReason := false
	for i, line := range strings.Split(string(b), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if len(open) == 0 {
				return nil, fmt.Errorf("%s:%d: a reason without a mutant", file, i+1)
			}
			hasReason = true
			for _, key := range open {
				explained[key] = strings.TrimSpace(explained[key] + " " + text)
			}
		default:
			if hasReason {
				open, hasReason = nil, false
			}
			if _, ok := explained[text]; ok {
				return nil, fmt.Errorf("%s:%d: explained twice: %s", file, i+1, text)
			}
			open, explained[text] = append(open, text), ""
		}
	}
	for key, reason := range explained {
		if reason == "" {
			return nil, fmt.Errorf("%s: no reason: %s", file, key)
		}
	}
	return explained, nil
}

// report prints what came out, and fails if a survivor is not explained or an
// explanation is of no mutant.
func report(w io.Writer, file string, total int, outcomes []outcome, explained map[string]string, keys map[string]bool) error {
	count := make(map[string]int)
	var missing, needless, stale []string
	open := 0
	for _, out := range outcomes {
		count[out.Result]++
		reason, ok := explained[out.Mutant]
		if out.survived() && strings.HasPrefix(reason, "Open:") {
			open++
		}
		switch {
		case out.survived() && !ok:
			missing = append(missing, fmt.Sprintf("%s (line %d, %s)", out.Mutant, out.Line, out.Result))
		case !out.survived() && ok:
			needless = append(needless, out.Mutant+" ("+out.By+")")
		}
	}
	for key := range explained {
		if !keys[key] {
			stale = append(stale, key)
		}
	}
	for _, list := range []struct {
		what string
		keys []string
	}{{"survives", missing}, {"explained, but the code has no such mutant", stale}, {"explained, but caught", needless}} {
		slices.Sort(list.keys)
		for _, key := range list.keys {
			fmt.Fprintf(w, "mutate: %s: %s\n", list.what, key)
		}
	}
	survived := count["survived"] + count["unreached"]
	fmt.Fprintf(w, "report: mutants: %d of %d tested: %d caught, %d of them by the time limit; %d survived, of which %d explained and %d open\n",
		len(outcomes), total, len(outcomes)-survived, count["timeout"], survived, survived-len(missing)-open, open)
	if len(missing) > 0 || len(stale) > 0 {
		return errors.New("write a test for each mutant that survives, or explain in " + file + " why no test can tell it from the code")
	}
	return nil
}
