package config

import (
	"fmt"
	"strings"

	"github.com/firnid/firn/grant"
)

// Match finds the pattern for a name, by Hazelcast's rules: the name itself if
// it is among the patterns; otherwise the pattern with a * that matches and has
// the most other characters. A * stands for any characters, also none, and a
// pattern has at most one. Two matches of equal length are an error. ok is false
// if no pattern matches; the caller then applies a default.
//
// Unlike in Hazelcast, the parts before and after the * must not overlap in the
// name: ab*ba does not match aba.
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
		return "", false,
			fmt.Errorf("config: %q matches the patterns %q and %q equally well: make one of them longer, or "+
				"configure the name itself",
				name, pattern, rival)
	}
	return pattern, best >= 0, nil
}

// IsPattern reports whether s can be the name of a sequencer, or a pattern that
// matches one. Anything else is a mistake that would silently match nothing.
func IsPattern(s string) bool {
	before, after, wild := strings.Cut(s, "*")
	switch {
	case !wild:
		return grant.CheckName(s) == nil
	case strings.Contains(after, "*"):
		return false
	case before == "":
		before = "a" // in place of the *
	}
	return grant.CheckName(before+after) == nil
}
