package firn

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// benchLayout has 2^17 IDs per millisecond, so that the code is measured and
// not the limit of the format.
const benchLayout = "bits=time:41.node:5.seq:17,epoch=2026-01-01T00:00:00Z"

func benchGenerator(b *testing.B, layout string) *Generator {
	b.Helper()
	g, err := NewGenerator(MustParseLayout(layout), Grant{Node: 1, From: time.Unix(1, 0)}, &Options{MaxAhead: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	return g
}

// The minimum cost of an ID, for ratios: one atomic add, and the clock.
func BenchmarkBase(b *testing.B) {
	b.Run("atomic-add", func(b *testing.B) {
		var n atomic.Uint64
		for b.Loop() {
			n.Add(1)
		}
	})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
}

func BenchmarkNext(b *testing.B) {
	for _, layout := range []string{benchLayout, "hazelcast", "lable"} {
		b.Run(MustParseLayout(layout).Fields(), func(b *testing.B) {
			g, ctx := benchGenerator(b, layout), context.Background()
			for b.Loop() {
				if _, err := g.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNext128(b *testing.B) {
	for _, layout := range []string{"uuidv7", "boundary"} {
		b.Run(layout, func(b *testing.B) {
			g, err := NewGenerator128(MustParseLayout(layout), Grant{Node: 1, From: time.Unix(1, 0)}, &Options{MaxAhead: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.TryNext(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFill4096 reports the time of 4096 IDs, and that of one.
func BenchmarkFill4096(b *testing.B) {
	g, ctx := benchGenerator(b, benchLayout), context.Background()
	dst := make([]ID, 4096)
	for b.Loop() {
		if err := g.Fill(ctx, dst); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(dst)), "ns/ID")
}

func BenchmarkCursor(b *testing.B) {
	c, ctx := benchGenerator(b, benchLayout).Cursor(), context.Background()
	for b.Loop() {
		if _, err := c.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParallel measures one ID, with several goroutines that share a
// generator.
func BenchmarkParallel(b *testing.B) {
	b.Run("Next", func(b *testing.B) {
		g, ctx := benchGenerator(b, benchLayout), context.Background()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := g.Next(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("Cursor", func(b *testing.B) {
		g, ctx := benchGenerator(b, benchLayout), context.Background()
		b.RunParallel(func(pb *testing.PB) {
			c := g.Cursor()
			for pb.Next() {
				if _, err := c.Next(ctx); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkPrefetcher(b *testing.B) {
	p, ctx := NewPrefetcher(benchGenerator(b, benchLayout), 1000, 0), context.Background()
	for b.Loop() {
		if _, err := p.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecompose(b *testing.B) {
	l := Default()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Decompose(117232474546794496); err != nil {
			b.Fatal(err)
		}
	}
}
