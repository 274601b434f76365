// Package collector makes a busy program collect its garbage less often.
//
// Go collects whenever the heap has doubled, at 4 MiB at the earliest. A server
// that keeps a few MiB and serves tens of thousands of HTTP requests per second
// therefore collects dozens of times per second, which takes a tenth of its
// processor time. A heap of 16 MiB costs less than that.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// usual is Go's default: the heap may double between two collections.
	usual = 100

	// often is the time between two collections below which the heap may grow
	// more, and seldom the time above which it may only double again.
	often, seldom = 100 * time.Millisecond, time.Second

	// most is the size in bytes up to which a heap may more than double.
	most = 16 << 20
)

// A Pacer adapts how often the process collects garbage. It must be made by
// Start.
type Pacer struct {
	mu      sync.Mutex // guards the fields below
	percent int
	last    time.Time // of the last collection
	stopped bool
}

// Start begins to adapt the collector to the load, until Stop. If the
// environment has GOGC or GOMEMLIMIT, or the program has changed GOGC, nothing
// is adapted.
func Start() *Pacer {
	p := &Pacer{percent: usual, last: time.Now()}
	before := debug.SetGCPercent(usual)
	if before != usual {
		debug.SetGCPercent(before)
	}
	if before != usual || os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		p.stopped = true
		return p
	}
	p.await()
	return p
}

// Stop ends the adaptation, and restores Go's default.
func (p *Pacer) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped {
		p.stopped = true
		debug.SetGCPercent(usual)
	}
}

// await calls collected after the next collection.
func (p *Pacer) await() {
	runtime.AddCleanup(new([64]byte), (*Pacer).collected, p)
}

// collected is called after a collection.
func (p *Pacer) collected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	now := time.Now()
	if percent := next(p.percent, now.Sub(p.last), live[0].Value.Uint64()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	p.last = now
	p.await()
}

// next returns by how many percent the heap may grow until the next collection,
// if live bytes are left of it after one that came the given time after the one
// before.
func next(percent int, since time.Duration, live uint64) int {
	switch {
	case since > seldom:
		percent = usual
	case since < often:
		percent *= 2
	}
	bound := int(min(most*100/max(live, 1), 10_000)) - 100
	return max(min(percent, bound), usual)
}
