package sim

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

func TestFaultsFound(t *testing.T) {
	if os.Getenv("F") == "" {
		t.Skip()
	}
	for name, f := range map[string]Focus{
		"2 adopt":  {World: "standby", Faults: []Fault{Lag, Lag, Crashed}, Window: 5000, Every: 5000},
		"3 cap":    {Calls: []Call{CallReserve}},
		"4 window": {World: "skewed", Faults: []Fault{Changed, Restore}, Calls: []Call{CallNextBatch}, Every: 10_000},
		"6 zero":   {World: "skewed", Begin: -20 * second, Format: "1960", Window: 5000, Busy: 500, Every: 5000, Faults: []Fault{Released, Crashed}},
		"any":      {},
	} {
		var mu sync.Mutex
		began := time.Now()
		first := Result{Seed: 1000}
		inParallel(200, func(seed uint64) {
			mu.Lock()
			d := first.Seed < seed
			mu.Unlock()
			if d {
				return
			}
			r := RunWith(seed, 3, f)
			mu.Lock()
			defer mu.Unlock()
			if r.Violation != "" && r.Seed < first.Seed {
				first = r
			}
		})
		fmt.Printf("%s: seed %d after %.2f h, %v: [%s] %s\n", name, first.Seed, first.Hours, time.Since(began), first.World, first.Violation)
	}
}
