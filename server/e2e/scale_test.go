//go:build unix

package e2e

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/e2e/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// The figures of docs/scale.md are from
//
//	go test ./e2e -run '^$' -bench 'Member|FirstID' -benchtime 1x
//
// in server/.

// kinds are the stores to measure, each made anew.
var kinds = []struct {
	name string
	open func(b *testing.B) func() grant.Store
}{
	{"memory", func(*testing.B) func() grant.Store {
		s := new(memstore.Store)
		return func() grant.Store { return s }
	}},
	{"directory", func(b *testing.B) func() grant.Store {
		return opener(b, "dir:"+b.TempDir()+"?create=true&volatile=true")
	}},
	{"etcd", func(b *testing.B) func() grant.Store {
		return opener(b, etcdtest.Start(b).URL("scale"))
	}},
}

func opener(b *testing.B, url string) func() grant.Store {
	return func() grant.Store {
		s, err := stores.Open(b.Context(), url, stores.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return s
	}
}

// cpu is what this process has used of processors.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkMember is one process that uses a thousand sequencers, an ID of each ten
// times in a second, for three windows of ten seconds. Its renewals are as many as
// those of 6,000 sequencers with a window of 60 s.
func BenchmarkMember(b *testing.B) {
	const sequencers, window = 1000, 10 * time.Second
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			store := kind.open(b)()
			defer store.Close()
			before, running := memory(), runtime.NumGoroutine()
			begin := time.Now()
			all := make([]*sequencer.Sequencer, sequencers)
			for i := range all {
				q, err := sequencer.Open(b.Context(), store, fmt.Sprintf("orders-%03d", i), &sequencer.Config{Layout: firn.Default(), Window: window})
				if err != nil {
					b.Fatal(err)
				}
				defer q.Close(b.Context())
				all[i] = q
			}
			b.ReportMetric(float64(time.Since(begin).Microseconds())/sequencers, "µs/open")
			draw := func(d time.Duration) (ids int) {
				ticker := time.NewTicker(100 * time.Millisecond)
				defer ticker.Stop()
				for end := time.Now().Add(d); time.Now().Before(end); <-ticker.C {
					for _, q := range all {
						if _, err := q.Next(b.Context()); err != nil {
							b.Fatal(err)
						}
						ids++
					}
				}
				return ids
			}
			stats := func() (renewed, waits uint64) {
				for _, q := range all {
					s := q.Stats()
					renewed += s.Keeper.Renewed
					waits += s.Waits
				}
				return renewed, waits
			}
			draw(window) // so that renewals are no longer all at once
			used, was := cpu(b), time.Now()
			renewed, waits := stats()
			ids := draw(3 * window)
			lasted := time.Since(was).Seconds()
			used = cpu(b) - used
			now, waited := stats()
			b.ReportMetric(float64(now-renewed)/lasted, "writes/s")
			b.ReportMetric(float64(waited-waits), "waits")
			b.ReportMetric(used.Seconds()*1000/lasted, "ms-cpu/s")
			b.ReportMetric(float64(used.Microseconds())/float64(now-renewed), "µs-cpu/write")
			b.ReportMetric(float64(ids)/lasted, "ids/s")
			b.ReportMetric((memory()-before)/sequencers, "B/sequencer")
			b.ReportMetric(float64(runtime.NumGoroutine()-running)/sequencers, "goroutines/sequencer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkFirstID opens a store and a sequencer, which others use too, makes an ID,
// and gives the number back, a hundred times.
func BenchmarkFirstID(b *testing.B) {
	const times = 100
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			open := kind.open(b)
			took := make([]time.Duration, times)
			for i := range took {
				begin := time.Now()
				s := open()
				q, err := sequencer.Open(b.Context(), s, "orders", &sequencer.Config{Layout: firn.Default()})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := q.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
				took[i] = time.Since(begin)
				if err := q.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				if kind.name != "memory" {
					_ = s.Close()
				}
			}
			slices.Sort(took[1:]) // the first has created it
			b.ReportMetric(float64(took[0].Microseconds())/1000, "ms/created")
			b.ReportMetric(float64(took[times/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(took[times-1].Microseconds())/1000, "ms/most")
			b.ReportMetric(0, "ns/op")
		})
	}
}
