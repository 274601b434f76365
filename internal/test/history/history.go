// Package history judges what concurrent calls of one key of a store returned.
// It is for tests.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/firnid/firn/grant"
)

// An Operation is one call of Get or CAS of one key, as its caller saw it. The
// value "" means absent. A call that was not sent must be left out.
type Operation struct {
	Kind      Kind
	Old, Next string  // of CAS
	Got       string  // of Get
	Outcome   Outcome // of CAS
	From, To  int64   // the times of call and return; no two times are equal
	By        string  // the caller, for Format
}

// A Kind of Operation.
type Kind byte

// The kinds of operations.
const (
	Get Kind = iota
	CAS
)

// An Outcome is what CAS returned.
type Outcome byte

// The outcomes of CAS.
const (
	Applied Outcome = iota // true
	Refused                // false
	Unknown                // an error: applied at some time after the call, even after its return, or never
	NotSent                // an error that matches grant.ErrNotSent: never applied, and so not part of a history
)

// OutcomeOf returns the outcome of a CAS from what it returned.
func OutcomeOf(applied bool, err error) Outcome {
	switch {
	case applied && err == nil:
		return Applied
	case err == nil:
		return Refused
	case errors.Is(err, grant.ErrNotSent) && !applied:
		return NotSent
	}
	return Unknown
}

// String returns a word for the outcome.
func (o Outcome) String() string {
	return [...]string{"applied", "refused", "unknown", "not sent"}[o]
}

// Max is the maximum number of operations for Linearizable.
const Max = 64

// Linearizable reports whether a register with compare-and-swap and the given
// initial value can have produced these results: whether each operation can be
// assigned a moment between its call and its return so that, in the order of
// these moments, each result is right.
//
// It is the search of Wing and Gong with the memory of Lowe: try each operation
// that may be next, continue from there, and never examine the same set of
// completed operations with the same value twice. The search takes exponential
// time in the number of operations that overlap, not in their total number. It
// panics if there are more than Max.
func Linearizable(initial string, history []Operation) bool {
	if len(history) > Max { // one bit each
		panic(fmt.Sprintf("history: a history of %d operations is too long: the maximum is %d", len(history), Max))
	}
	ops := slices.Clone(history)
	var must uint64 // those that certainly happened
	for i := range ops {
		if ops[i].Kind == CAS && ops[i].Outcome == Unknown {
			ops[i].To = math.MaxInt64
		} else {
			must |= 1 << i
		}
	}
	type state struct {
		done  uint64
		value string
	}
	seen := make(map[state]bool)
	var search func(state) bool
	search = func(s state) bool {
		if s.done&must == must {
			return true
		}
		if seen[s] {
			return false
		}
		seen[s] = true
		// The next operation must have been called before any other remaining
		// one returned.
		first := int64(math.MaxInt64)
		for i := range ops {
			if s.done&(1<<i) == 0 {
				first = min(first, ops[i].To)
			}
		}
		for i := range ops {
			if s.done&(1<<i) != 0 || ops[i].From > first {
				continue
			}
			if value, ok := ops[i].apply(s.value); ok && search(state{s.done | 1<<i, value}) {
				return true
			}
		}
		return false
	}
	return search(state{0, initial})
}

// apply returns the value after an operation on value, and whether the
// operation's result is right then.
func (op Operation) apply(value string) (string, bool) {
	switch {
	case op.Kind == Get:
		return value, op.Got == value
	case op.Outcome == Refused:
		return value, op.Old != value
	default: // an unknown one that changes nothing need not be assigned a moment
		return op.Next, op.Old == value
	}
}

// Format returns a line for each operation, in the order of the calls.
func Format(initial string, history []Operation) string {
	ops := slices.SortedFunc(slices.Values(history), func(a, b Operation) int { return cmp.Compare(a.From, b.From) })
	var b strings.Builder
	fmt.Fprintf(&b, "begins with %.60q", initial)
	for _, op := range ops {
		fmt.Fprintf(&b, "\n%6d to %-6d %s: %v", op.From, op.To, op.By, op)
	}
	return b.String()
}

// String returns the call and what it returned.
func (op Operation) String() string {
	if op.Kind == Get {
		return fmt.Sprintf("Get = %.60q", op.Got)
	}
	return fmt.Sprintf("CAS(%.60q, %.60q) = %v", op.Old, op.Next, op.Outcome)
}
