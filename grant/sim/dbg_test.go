package sim

import (
	"fmt"
	"github.com/firnid/firn/internal/mutant"
	"os"
	"testing"
)

func TestDbg(t *testing.T) {
	if os.Getenv("M") == "" {
		t.Skip()
	}
	for _, m := range mutant.All() {
		if m.String() == os.Getenv("M") {
			var s uint64
			fmt.Sscan(os.Getenv("S"), &s)
			r := RunWith(s, 3, mistakes[m].focus)
			fmt.Println(r.World, r.Violation, r.Failed, r.Tries)
		}
	}
}
func TestDbg2(t *testing.T) {
	if os.Getenv("M2") == "" {
		t.Skip()
	}
	var sum [Faults]int
	for s := uint64(1); s < 20; s++ {
		r := RunWith(s, 3, mistakes[mutant.FenceUnheard].focus)
		for f, n := range r.Faults {
			sum[f] += n
		}
		if r.Violation != "" {
			fmt.Println(s, r.Violation)
		}
	}
	for f, n := range sum {
		fmt.Print(Fault(f), n, ", ")
	}
}
func TestDbg3(t *testing.T) {
	if os.Getenv("M3") == "" {
		t.Skip()
	}
	mutant.Set(mutant.FenceUnheard)
	for s := uint64(1); s < 20; s++ {
		r := RunWith(s, 3, mistakes[mutant.FenceUnheard].focus)
		if r.Violation != "" {
			fmt.Println(s, r.Violation)
		}
	}
}
