package main

import (
	"crypto/rand"
	randv2 "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// sink receives the results of the loops, so that the compiler cannot remove
// them.
var sink atomic.Uint64

// Each counter has its own cache line: two threads must compete for the
// subject's memory, and not for what is next to it.
type counter struct {
	_ [64]byte
	n atomic.Uint64
	_ [56]byte
}

// atomicAdd is the reference for all other subjects: no generator whose IDs
// increase across the whole program can be cheaper.
func atomicAdd() subject {
	c := new(counter)
	return subject{name: "atomic-add", run: func(n int) {
		for range n {
			c.n.Add(1)
		}
	}}
}

// addCounter is the reference for Next: an atomic add, and the counter that
// shows whether the clock's last reading is still fresh. The cost of both
// together differs between processors, from 1.1 to 4 times that of the add
// alone.
func addCounter() subject {
	c := new(counter)
	return subject{name: "add-counter", run: func(n int) {
		var x uint64
		for range n {
			c.n.Add(1)
			x ^= cycles()
		}
		sink.Store(x)
	}}
}

func mutexAdd() subject {
	var c struct {
		_ [64]byte
		sync.Mutex
		n uint64
		_ [48]byte
	}
	return subject{name: "mutex", run: func(n int) {
		for range n {
			c.Lock()
			c.n++
			c.Unlock()
		}
	}}
}

func casAdd() subject {
	c := new(counter)
	return subject{name: "cas-loop", run: func(n int) {
		for range n {
			for {
				v := c.n.Load()
				if c.n.CompareAndSwap(v, v+1) {
					break
				}
			}
		}
	}}
}

// baselines returns the operations that generators are made of.
func baselines() []subject {
	start := time.Now()
	return []subject{
		mutexAdd(),
		casAdd(),
		{name: "time.Now", run: func(n int) {
			var x uint64
			for range n {
				x ^= uint64(time.Now().UnixNano())
			}
			sink.Store(x)
		}},
		{name: "clock-read", run: func(n int) { // time.Since: one reading of the clock instead of two
			var x uint64
			for range n {
				x ^= uint64(time.Since(start))
			}
			sink.Store(x)
		}},
		{name: "rand-uint64", run: func(n int) {
			var x uint64
			for range n {
				x ^= randv2.Uint64()
			}
			sink.Store(x)
		}},
		{name: "crypto-rand-8", run: func(n int) {
			var b [8]byte
			for range n {
				_, _ = rand.Read(b[:])
			}
			sink.Store(uint64(b[0]))
		}},
	}
}
