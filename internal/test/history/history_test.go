package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// byBruteForce says a second time what Linearizable does, by trying all orders.
func byBruteForce(initial string, history []Operation) bool {
	if len(history) == 0 {
		return true
	}
	for i, op := range history {
		rest := slices.Delete(slices.Clone(history), i, i+1)
		isUnknown := op.Kind == CAS && op.Outcome == Unknown
		if isUnknown && byBruteForce(initial, rest) {
			return true // it is never applied
		}
		late := slices.ContainsFunc(rest, func(other Operation) bool {
			return other.To < op.From && (other.Kind == Get || other.Outcome != Unknown)
		})
		if late {
			continue // another one had returned before this one was called
		}
		switch {
		case op.Kind == Get && op.Got == initial, op.Kind == CAS && op.Outcome == Refused && op.Old != initial:
			if byBruteForce(initial, rest) {
				return true
			}
		case op.Kind == CAS && op.Outcome != Refused && op.Old == initial:
			if byBruteForce(op.Next, rest) {
				return true
			}
		}
	}
	return false
}

// TestLinearizableAgainstBruteForce compares the two on histories of chance,
// most of which are wrong by a little.
func TestLinearizableAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	values := []string{"", "a", "b"}
	var counts [2]int
	for range 20000 {
		n := 1 + rng.IntN(6)
		moments := rng.Perm(2 * n)
		history := make([]Operation, n)
		for i := range history {
			from, to := int64(moments[2*i]), int64(moments[2*i+1])
			op := Operation{Kind: Kind(rng.IntN(2)), From: min(from, to), To: max(from, to), By: fmt.Sprint(i)}
			if op.Kind == Get {
				op.Got = values[rng.IntN(3)]
			} else {
				op.Old, op.Next, op.Outcome = values[rng.IntN(3)], values[1+rng.IntN(2)], Outcome(rng.IntN(3))
			}
			history[i] = op
		}
		initial := values[rng.IntN(3)]
		got, want := Linearizable(initial, history), byBruteForce(initial, history)
		if got != want {
			t.Fatalf("Linearizable = %v, want %v: %s", got, want, Format(initial, history))
		}
		counts[map[bool]int{true: 1}[got]]++
	}
	if min(counts[0], counts[1]) < 1000 {
		t.Errorf("%d histories were refused and %d accepted, want many of both", counts[0], counts[1])
	}
}
