//go:build linux || darwin || windows

package dirstore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// The figures in docs and reports are from:
//
//	go test ./grant/dirstore -run '^$' -bench . -benchtime 2s
//
// They are of the disk below the temporary directory more than of this package:
// set TMPDIR to a directory on the disk that is of interest.

// report adds the calls per second and the median to a benchmark.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "calls/s")
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	}
}

// BenchmarkCAS replaces one value again and again.
func BenchmarkCAS(b *testing.B) {
	s := open(b, b.TempDir())
	ctx := context.Background()
	var took []time.Duration
	var old []byte
	for n := 0; b.Loop(); n++ {
		next := fmt.Appendf(nil, "a value as long as a record of a grant, which is about so long: %080d", n)
		begin := time.Now()
		if ok, err := s.CAS(ctx, "v1/orders/n/00042", old, next); !ok || err != nil {
			b.Fatal(ok, err)
		}
		took = append(took, time.Since(begin))
		old = next
	}
	report(b, took)
}

// BenchmarkCASApart has eight goroutines with their own keys.
func BenchmarkCASApart(b *testing.B) {
	s := open(b, b.TempDir())
	ctx := context.Background()
	var worker atomic.Int64
	b.SetParallelism(4) // times two processors
	b.RunParallel(func(pb *testing.PB) {
		key := fmt.Sprintf("v1/orders/n/%05d", worker.Add(1))
		var old []byte
		for n := 0; pb.Next(); n++ {
			next := fmt.Appendf(nil, "%0150d", n)
			if ok, err := s.CAS(ctx, key, old, next); !ok || err != nil {
				b.Error(ok, err)
				return
			}
			old = next
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkIncrement makes four stores, in place of processes, raise one
// counter; refused attempts are not counted.
func BenchmarkIncrement(b *testing.B) {
	dir := b.TempDir()
	ctx := context.Background()
	var tries atomic.Int64
	b.SetParallelism(2)
	b.RunParallel(func(pb *testing.PB) {
		s := open(b, dir)
		for pb.Next() {
			for {
				tries.Add(1)
				old, err := s.Get(ctx, "counter")
				if err != nil {
					b.Error(err)
					return
				}
				ok, err := s.CAS(ctx, "counter", old, fmt.Appendf(nil, "%d", len(old)+int(tries.Load())))
				if err != nil {
					b.Error(err)
					return
				}
				if ok {
					break
				}
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64(tries.Load())/float64(b.N), "tries")
}

// BenchmarkGet reads one value.
func BenchmarkGet(b *testing.B) {
	s := open(b, b.TempDir())
	ctx := context.Background()
	if ok, err := s.CAS(ctx, "v1/orders/n/00042", nil, fmt.Appendf(nil, "%0150d", 0)); !ok || err != nil {
		b.Fatal(ok, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Get(ctx, "v1/orders/n/00042"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a store of 1,000 records, and BenchmarkList lists it.
func BenchmarkOpen(b *testing.B) {
	dir := filled(b, 1000)
	for b.Loop() {
		s, err := Open(dir, forTests())
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkList(b *testing.B) {
	s := open(b, filled(b, 1000))
	for b.Loop() {
		n := 0
		err := s.List(context.Background(), "v1/orders/n/", func(string, []byte) bool { n++; return true })
		if n != 1000 || err != nil {
			b.Fatal(n, err)
		}
	}
}

// filled creates a store with records.
func filled(b *testing.B, n int) string {
	dir := b.TempDir()
	s := open(b, dir)
	for i := range n {
		if ok, err := s.CAS(context.Background(), fmt.Sprintf("v1/orders/n/%05d", i), nil, fmt.Appendf(nil, "%0150d", i)); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
	return dir
}
