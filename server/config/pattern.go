package config

import (
	"fmt"
	"strings"

	"github.com/firnid/firn/grant"
)

// An AmbiguityError says that two patterns serve a name equally well.
type AmbiguityError struct {
	Name     string
	Patterns [2]string
}

func (e *AmbiguityError) Error() string {
	return fmt.Sprintf("config: %q is served by %q and by %q equally well: make one of them longer, or configure the name itself",
		e.Name, e.Patterns[0], e.Patterns[1])
}

// Match finds the pattern that serves a name, as Hazelcast does: the name
// itself where it is among the patterns; else, of those with a * that stands
// for any characters (also none), the one with the most others. There is at
// most one * in a pattern. Two that are equally long are an *AmbiguityError.
// ok is false where no pattern serves the name; what serves then, such as a
// default, is the caller's business.
//
// Unlike Hazelcast, what stands before and after the * may not overlap in the
// name: ab*ba does not serve aba.
func Match(patterns []string, name string) (pattern string, ok bool, err error) {
	best := -1
	var rival string
	for _, p := range patterns {
		if p == name {
			return p, true, nil
		}
		before, after, wild := strings.Cut(p, "*")
		others := len(before) + len(after)
		if !wild || len(name) < others || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
			continue
		}
		switch {
		case others > best:
			best, pattern, rival = others, p, ""
		case others == best && p != pattern:
			rival = p
		}
	}
	if rival != "" {
		return "", false, &AmbiguityError{Name: name, Patterns: [2]string{pattern, rival}}
	}
	return pattern, best >= 0, nil
}

// IsPattern reports whether a sequencer can have the name, or one that the
// pattern matches: else it is a slip, and would match nothing without a word.
func IsPattern(s string) bool {
	before, after, wild := strings.Cut(s, "*")
	switch {
	case !wild:
		return grant.CheckName(s) == nil
	case strings.Contains(after, "*"):
		return false
	case before == "":
		before = "a" // what the * stands for
	}
	return grant.CheckName(before+after) == nil
}
