// Package simkit is the kernel of simulations: events in sequence in virtual
// time, randomness from a seed, and a hash of everything that happened. A seed
// determines a run: the same seed repeats it, to the byte. There are no
// goroutines and there is no real time in a run. Field reads a record.
//
// Packages grant/sim and grant/fleet are built on it. It is for tests.
package simkit

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
)

// A World is a run. It must be made by NewWorld, and is used by one goroutine.
type World struct {
	Now       int64      // the true time, in µs
	Rand      *rand.Rand // the source of all randomness
	Hash      uint64     // of the values passed to Trace
	Violation string     // the first violated condition; "" if there is no violation

	queue queue
	last  int // last token
}

// NewWorld returns a World that begins at a time. The stream distinguishes
// simulations with the same seed.
func NewWorld(seed, stream uint64, now int64) World {
	return World{Now: now, Rand: rand.New(rand.NewPCG(seed, stream))}
}

// Token returns a number greater than all previous ones.
func (w *World) Token() int {
	w.last++
	return w.last
}

// At schedules do for a time, or for now if that has passed. Events at the same
// time happen in the order of the calls.
func (w *World) At(at int64, do func()) {
	heap.Push(&w.queue, event{max(at, w.Now), w.Token(), do})
}

// After is At, d µs from now.
func (w *World) After(d int64, do func()) { w.At(w.Now+d, do) }

// Next runs the next event, unless it is after end. It reports whether there
// was one.
func (w *World) Next(end int64) bool {
	if len(w.queue) == 0 || w.queue[0].at > end {
		return false
	}
	e := heap.Pop(&w.queue).(event)
	w.Now = max(w.Now, e.at)
	e.do()
	return true
}

// Chance returns true with the probability p.
func (w *World) Chance(p float64) bool { return w.Rand.Float64() < p }

// Fail records a violated condition, if it is the first.
func (w *World) Fail(format string, a ...any) {
	if w.Violation == "" {
		w.Violation = fmt.Sprintf(format, a...)
	}
}

// Trace adds values to the Hash.
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
