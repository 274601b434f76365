//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/kubetest"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// The figures of docs/scale.md are from
//
//	go test ./e2e -run '^$' -bench 'Member|FirstID' -benchtime 1x
//	go test ./e2e -run '^$' -bench Store -benchtime 2s
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
		path := b.TempDir()
		return func() grant.Store {
			s, err := dirstore.Open(b.Context(), path, &dirstore.Options{Create: true, AllowVolatile: true})
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
	}},
	{"etcd", func(b *testing.B) func() grant.Store {
		url := etcdtest.Start(b).URL("scale")
		return func() grant.Store {
			s, err := stores.Open(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
	}},
	{"kubernetes", func(b *testing.B) func() grant.Store {
		c := kubetest.Start(b)
		c.Namespace("scale")
		url := "kubernetes://?kubeconfig=" + c.Kubeconfig("", "scale", "")
		return func() grant.Store {
			s, err := stores.Open(b.Context(), url)
			if err != nil {
				b.Fatal(err)
			}
			return s
		}
	}},
}

// cpu is what this process has used of processors, and, where there is a /proc,
// those that it has started, which are etcd and the API server. Unlike the time
// that goes by, it is about the same on a machine that is busy with other
// things.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// What follows the name in parentheses: state, parent, …, user and system
		// time in hundredths of a second.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used += time.Duration(user+system) * 10 * time.Millisecond
	}
	return used
}

func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkMember is one process that uses a thousand sequencers, an ID of each
// ten times in a second. Windows are of ten seconds, so that there are as many
// renewals as 6,000 sequencers have with the usual window; in etcd, which is
// busy with that, of 60 s, and in Kubernetes of 60 s and of its usual 10 min.
func BenchmarkMember(b *testing.B) {
	const sequencers, drawers = 1000, 20
	for _, run := range []struct {
		kind   int
		window time.Duration
	}{{0, 10 * time.Second}, {1, 10 * time.Second}, {2, time.Minute}, {3, time.Minute}, {3, 10 * time.Minute}} {
		kind, window := kinds[run.kind], run.window
		b.Run(fmt.Sprint(kind.name, " ", window), func(b *testing.B) {
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
			draw := func(d time.Duration) int {
				var ids atomic.Int64
				var group sync.WaitGroup
				end := time.Now().Add(d)
				for mine := range slices.Chunk(all, sequencers/drawers) {
					group.Go(func() {
						ticker := time.NewTicker(100 * time.Millisecond)
						defer ticker.Stop()
						for ; time.Now().Before(end); <-ticker.C {
							for _, q := range mine {
								if _, err := q.Next(b.Context()); err != nil {
									b.Error(err)
									return
								}
								ids.Add(1)
							}
						}
					})
				}
				group.Wait()
				return int(ids.Load())
			}
			stats := func() (renewed, waits uint64) {
				for _, q := range all {
					s := q.Stats()
					renewed += s.Keeper.Renewed
					waits += s.Waits
				}
				return renewed, waits
			}
			draw(window / 2) // so that renewals are no longer all at once
			used, was := cpu(b), time.Now()
			renewed, waits := stats()
			ids := draw(30 * time.Second)
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

// BenchmarkFirstID opens a store and a sequencer, which others use too, makes
// an ID, and gives the number back, a hundred times.
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

// BenchmarkStore is what a store does in a second for 64 goroutines of one
// process: replace 1,024 records of the usual length, each goroutine its own,
// and read them.
func BenchmarkStore(b *testing.B) {
	const records, goroutines = 1024, 64
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			s := kind.open(b)()
			defer s.Close()
			key := func(n int) string { return fmt.Sprintf("v1/orders/n/%04d", n) }
			value := func(n int) []byte { return fmt.Appendf(nil, "%0230d", n) }
			each := func(b *testing.B, do func(worker, i int) error) {
				var next atomic.Int64
				var workers sync.WaitGroup
				begin, used := time.Now(), cpu(b)
				for worker := range goroutines {
					workers.Go(func() {
						for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
							if err := do(worker, i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				workers.Wait()
				b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "calls/s")
				b.ReportMetric(float64((cpu(b)-used).Microseconds())/float64(b.N), "µs-cpu/call")
			}
			var last [records]int
			b.Run("cas", func(b *testing.B) {
				each(b, func(worker, i int) error {
					n := worker + goroutines*(i%(records/goroutines))
					var old []byte
					if last[n] != 0 {
						old = value(last[n])
					}
					last[n]++
					ok, err := s.CAS(b.Context(), key(n), old, value(last[n]))
					if err == nil && !ok {
						err = errors.New("refused")
					}
					return err
				})
			})
			for n := range records {
				if last[n] == 0 {
					if ok, err := s.CAS(b.Context(), key(n), nil, value(1)); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			}
			b.Run("get", func(b *testing.B) {
				each(b, func(_, i int) error {
					_, err := s.Get(b.Context(), key(i*7%records))
					return err
				})
			})
		})
	}
}
