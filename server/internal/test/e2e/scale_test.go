//go:build unix

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// The figures of docs/scale.md are from
//
//	go test ./internal/test/e2e -run '^$' -bench 'Sequencers|Store' -benchtime 2s
//
// in server/.

// kinds are the stores to measure.
var kinds = []struct {
	name string
	url  func(b *testing.B) string // of a new one
}{
	{"memory", nil},
	{"directory", func(b *testing.B) string { return "dir:" + b.TempDir() + "?create=true&volatile=true" }},
	{"etcd", func(b *testing.B) string { return etcdtest.Start(b).URL("scale") }},
	{"kubernetes", func(b *testing.B) string {
		c := kubetest.Start(b)
		c.Namespace("scale")
		return "kubernetes://?kubeconfig=" + c.Kubeconfig("", "scale", "")
	}},
}

// openNew opens a store of a kind, anew.
func openNew(b *testing.B, url func(b *testing.B) string) grant.Store {
	if url == nil {
		return new(memstore.Store)
	}
	return must.Get(stores.Open(b.Context(), url(b)))(b)
}

// cpu is what this process has used of processors, and, where there is a /proc,
// those that it has started, which are etcd and the API server. Unlike the time
// that goes by, it is about the same on a machine that is busy with other
// things.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		// What follows the name in parentheses: state, parent, …, user and
		// system time in hundredths of a second.
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

// BenchmarkSequencers opens a thousand sequencers in one process, and measures
// the time and the memory of each.
func BenchmarkSequencers(b *testing.B) {
	const sequencers = 1000
	memory := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			store := openNew(b, kind.url)
			defer store.Close()
			before, begin := memory(), time.Now()
			for i := range sequencers {
				q := must.Get(sequencer.Open(b.Context(), store, fmt.Sprintf("orders-%03d", i), &sequencer.Options{Layout: firn.Default()}))(b)
				defer q.Close(b.Context())
			}
			b.ReportMetric(float64(time.Since(begin).Microseconds())/sequencers, "µs/open")
			b.ReportMetric((memory()-before)/sequencers, "B/sequencer")
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
			s := openNew(b, kind.url)
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
