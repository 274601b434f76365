package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLinearizable(t *testing.T) {
	read := func(from, to int64, got string) Operation {
		return Operation{Kind: Get, Got: got, From: from, To: to}
	}
	swap := func(from, to int64, old, next string, o Outcome) Operation {
		return Operation{Kind: CAS, Old: old, Next: next, Outcome: o, From: from, To: to}
	}
	tests := []struct {
		name    string
		initial string
		history []Operation
		want    bool
	}{
		{"nothing", "", nil, true},
		{"one after the other", "", []Operation{
			read(1, 2, ""), swap(3, 4, "", "a", Applied), read(5, 6, "a"), swap(7, 8, "a", "b", Applied), read(9, 10, "b"),
		}, true},
		{"not what it began with", "a", []Operation{read(1, 2, "")}, false},
		{"stale read", "", []Operation{swap(1, 2, "", "a", Applied), read(3, 4, "")}, false},
		{"read of both while a swap is under way", "", []Operation{swap(1, 6, "", "a", Applied), read(2, 3, ""), read(4, 5, "a")}, true},
		{"read goes back", "", []Operation{swap(1, 6, "", "a", Applied), read(2, 3, "a"), read(4, 5, "")}, false},
		{"two readers differ at once", "", []Operation{swap(1, 8, "", "a", Applied), read(2, 7, "a"), read(3, 4, "")}, true},
		{"value from nowhere", "", []Operation{read(1, 2, "a")}, false},
		{"lost update", "0", []Operation{swap(1, 4, "0", "1", Applied), swap(2, 3, "0", "1", Applied)}, false},
		{"lost update seen later only", "0", []Operation{
			swap(1, 4, "0", "a", Applied), swap(2, 5, "0", "b", Refused), read(6, 7, "b"),
		}, false},
		{"two creators", "", []Operation{swap(1, 3, "", "a", Applied), swap(2, 4, "", "b", Applied)}, false},
		{"one creator", "", []Operation{swap(1, 3, "", "a", Applied), swap(2, 4, "", "b", Refused)}, true},
		{"refused for no reason", "a", []Operation{swap(1, 2, "a", "b", Refused)}, false},
		{"refused though it was equal all the time", "a", []Operation{
			swap(1, 8, "a", "b", Refused), read(2, 3, "a"), read(4, 5, "a"),
		}, false},
		{"refused in the middle of A, B, A", "a", []Operation{
			swap(1, 8, "a", "c", Refused), swap(2, 3, "a", "b", Applied), swap(4, 5, "b", "a", Applied), read(6, 7, "a"),
		}, true},
		{"A, B, A by value", "a", []Operation{
			swap(1, 2, "a", "b", Applied), swap(3, 4, "b", "a", Applied), swap(5, 6, "a", "c", Applied),
		}, true},
		{"applied and dropped", "a", []Operation{swap(1, 2, "a", "b", Applied), swap(3, 4, "a", "c", Applied)}, false},
		{"refused and applied", "a", []Operation{swap(1, 2, "b", "c", Refused), read(3, 4, "c")}, false},
		{"unknown and applied", "a", []Operation{swap(1, 2, "a", "b", Unknown), read(3, 4, "b")}, true},
		{"unknown and not applied", "a", []Operation{swap(1, 2, "a", "b", Unknown), read(3, 4, "a")}, true},
		{"unknown and applied late", "a", []Operation{swap(1, 2, "a", "b", Unknown), read(3, 4, "a"), read(5, 6, "b")}, true},
		{"unknown, applied and gone again", "a", []Operation{swap(1, 2, "a", "b", Unknown), read(3, 4, "b"), read(5, 6, "a")}, false},
		{"unknown and applied twice", "a", []Operation{
			swap(1, 2, "a", "b", Unknown), read(3, 4, "b"), swap(5, 6, "b", "a", Applied), read(7, 8, "b"),
		}, false},
		{"unknown before it was called", "a", []Operation{read(1, 2, "b"), swap(3, 4, "a", "b", Unknown)}, false},
		{"unknown decides who won", "a", []Operation{
			swap(1, 2, "a", "b", Unknown), swap(3, 4, "a", "c", Refused), read(5, 6, "b"),
		}, true},
		{"chain out of order of the calls", "", []Operation{
			swap(1, 10, "b", "c", Applied), swap(2, 9, "a", "b", Applied), swap(3, 8, "", "a", Applied), read(11, 12, "c"),
		}, true},
	}
	for _, test := range tests {
		if got := Linearizable(test.initial, test.history); got != test.want {
			t.Errorf("%s: Linearizable = %v, want %v: %s", test.name, got, test.want, Format(test.initial, test.history))
		}
		if got := byBruteForce(test.initial, test.history); got != test.want {
			t.Errorf("%s: byBruteForce = %v, want %v", test.name, got, test.want)
		}
	}
}

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

// The longest history that may be: 64 calls of which 8 overlap at any moment.
func TestLinearizableOfLongHistories(t *testing.T) {
	var history []Operation
	value := 0
	for i := range Max {
		op := Operation{From: int64(10 * i), To: int64(10*i + 75), By: fmt.Sprint(i % 8)}
		if i%2 == 0 {
			op.Kind, op.Old, op.Next = CAS, fmt.Sprint(value), fmt.Sprint(value+1)
			value++
		} else {
			op.Got = fmt.Sprint(value)
		}
		history = append(history, op)
	}
	if !Linearizable("0", history) {
		t.Errorf("Linearizable = false, want true: %s", Format("0", history))
	}
	last := &history[len(history)-1]
	last.Got = fmt.Sprint(value - 10) // gone since before it was called
	if Linearizable("0", history) {
		t.Errorf("Linearizable = true, want false: %s", Format("0", history))
	}
}
