//go:build firnmutant

package sim

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn/internal/mutant"
)

func TestMutExplore(t *testing.T) {
	want := os.Getenv("MUT")
	if want == "" {
		t.Skip()
	}
	for _, m := range mutant.All() {
		if want != "all" && !strings.Contains(","+want+",", ","+m.String()+",") {
			continue
		}
		if os.Getenv("NOMUT") == "" {
			mutant.Set(m)
		}
		var mu sync.Mutex
		began := time.Now()
		first := Result{Seed: 1000}
		hours := 0.0
		inParallel(uint64(runsEach()), func(seed uint64) {
			mu.Lock()
			d := first.Seed < seed
			mu.Unlock()
			if d {
				return
			}
			r := RunWith(seed, 2, mistakes[m].focus)
			mu.Lock()
			defer mu.Unlock()
			hours += r.Hours
			if r.Violation != "" && r.Seed < first.Seed {
				first = r
			}
		})
		mutant.Set(mutant.None)
		fmt.Printf("%-18s seed %4d %5.2fh of %5.1f %5.1fs [%s] %s\n", m, first.Seed, first.Hours, hours, time.Since(began).Seconds(), first.World, first.Violation)
	}
}

func runsEach() int {
	var n int
	if _, err := fmt.Sscan(os.Getenv("RUNS"), &n); err != nil {
		return 40
	}
	return n
}
