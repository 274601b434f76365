// Package simkit is the kernel of simulations: events one after the other in
// virtual time, chance from a seed, and a hash of all that happened. A seed is
// a run: the same seed does the same again, to the byte. There is no goroutine
// and no real time in it. Field reads a record.
//
// Packages grant/sim and grant/fleet are made with it. It is for tests.
package simkit

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
)

// A World is a run. It must be made by NewWorld, and is used by one goroutine.
type World struct {
	Now       int64      // the true time, in µs
	Rand      *rand.Rand // all that happens by chance
	Hash      uint64     // of what Trace was given
	Violation string     // the first of what must not be; "" while all holds

	queue queue
	last  int // token given out
}

// NewWorld returns a World that begins at a time. The stream tells simulations
// with the same seed apart.
func NewWorld(seed, stream uint64, now int64) World {
	return World{Now: now, Rand: rand.New(rand.NewPCG(seed, stream))}
}

// Token returns a number above all before.
func (w *World) Token() int {
	w.last++
	return w.last
}

// At has something done at a time, or now if that has passed. What is due at
// the same time is done in the order of the calls.
func (w *World) At(at int64, do func()) {
	heap.Push(&w.queue, event{max(at, w.Now), w.Token(), do})
}

// After is At, d µs from now.
func (w *World) After(d int64, do func()) { w.At(w.Now+d, do) }

// Next does what is due next, unless that is after end. It reports whether
// there was something.
func (w *World) Next(end int64) bool {
	if len(w.queue) == 0 || w.queue[0].at > end {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	w.Now = max(w.Now, e.at)
	e.do()
	return true
}

// Chance is true with the probability p.
func (w *World) Chance(p float64) bool { return w.Rand.Float64() < p }

// Fail notes what must not be, if nothing was before.
func (w *World) Fail(format string, a ...any) {
	if w.Violation == "" {
		w.Violation = fmt.Sprintf(format, a...)
	}
}

// Trace adds what happened to the Hash.
func (w *World) Trace(values ...int64) {
	for _, v := range values {
		w.Hash = (w.Hash ^ uint64(v)) * 0x100000001b3
		w.Hash ^= w.Hash >> 29
	}
}

// An event is something that will happen.
type event struct {
	at    int64
	token int
	do    func()
}

// A queue is a heap of events, the earliest first.
type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].token < q[j].token
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	e := old[last]
	old[last] = event{}
	*q = old[:last]
	return e
}
