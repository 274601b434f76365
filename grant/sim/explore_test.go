package sim

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestExplore(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	if n == 0 {
		t.Skip()
	}
	h, _ := strconv.Atoi(os.Getenv("H"))
	if h == 0 {
		h = 2
	}
	var mu sync.Mutex
	var sum Result
	began := time.Now()
	bad := 0
	inParallel(uint64(n), func(seed uint64) {
		if m, _ := strconv.Atoi(os.Getenv("MOD")); m > 0 {
			seed = seed*16 + uint64(m)
			if o, _ := strconv.Atoi(os.Getenv("ONE")); o > 0 {
				seed = uint64(o)
			}
		}
		r := Run(seed, h)
		mu.Lock()
		defer mu.Unlock()
		if r.Violation != "" {
			bad++
			fmt.Printf("%d [%s] %.2fh: %s\n", seed, r.World, r.Hours, r.Violation)
		}
		if r.BesiegedTries > 0 {
			fmt.Printf("   %d [%s]: besieged %d of %d missing\n", seed, r.World, r.BesiegedFailed, r.BesiegedTries)
		}
		if r.Tries > 0 && r.Failed*50 > r.Tries {
			fmt.Printf("   %d [%s]: %d of %d missing\n", seed, r.World, r.Failed, r.Tries)
		}
		sum.Hours += r.Hours
		sum.IDs += r.IDs
		sum.Tries += r.Tries
		sum.Failed += r.Failed
		sum.BesiegedTries += r.BesiegedTries
		sum.BesiegedFailed += r.BesiegedFailed
		for f, n := range r.Faults {
			sum.Faults[f] += n
		}
		for c, n := range r.Calls {
			sum.Calls[c] += n
		}
	})
	for f, n := range sum.Faults {
		fmt.Printf("%v %d, ", Fault(f), n)
	}
	fmt.Println()
	for f, n := range sum.Calls {
		fmt.Printf("%v %d, ", Call(f), n)
	}
	fmt.Println()
	fmt.Printf("%d bad of %d; %.0f h in %v (%.1f h/s), tries %d failed %d besieged %d %d\n", bad, n, sum.Hours, time.Since(began), sum.Hours/time.Since(began).Seconds(), sum.Tries, sum.Failed, sum.BesiegedTries, sum.BesiegedFailed)
}
