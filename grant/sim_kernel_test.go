package grant

import (
	"bytes"
	"container/heap"
	"fmt"
	"math/rand/v2"
)

// A kernel is how a world runs: events in sequence in virtual time, randomness
// from a seed, and a hash of everything that happened. A seed determines a run:
// the same seed repeats it, to the byte. There are no goroutines and there is no
// real time in a run.
type kernel struct {
	Now       int64      // the true time, in µs
	Rand      *rand.Rand // the source of all randomness
	Hash      uint64     // of the values passed to Trace
	Violation string     // the first violated condition; "" if there is no violation

	queue kernelQueue
	last  int // last token
}

// newKernel returns a kernel that begins at a time.
func newKernel(seed uint64, now int64) kernel {
	return kernel{Now: now, Rand: rand.New(rand.NewPCG(seed, 0x5eed))}
}

// Token returns a number greater than all previous ones.
func (w *kernel) Token() int {
	w.last++
	return w.last
}

// At schedules do for a time, or for now if that has passed. Events at the same
// time happen in the order of the calls.
func (w *kernel) At(at int64, do func()) {
	heap.Push(&w.queue, kernelEvent{max(at, w.Now), w.Token(), do})
}

// After is At, d µs from now.
func (w *kernel) After(d int64, do func()) { w.At(w.Now+d, do) }

// Next runs the next event, unless it is after end. It reports whether there
// was one.
func (w *kernel) Next(end int64) bool {
	if len(w.queue) == 0 || w.queue[0].at > end {
		return false
	}
	e := heap.Pop(&w.queue).(kernelEvent)
	w.Now = max(w.Now, e.at)
	e.do()
	return true
}

// Chance returns true with the probability p.
func (w *kernel) Chance(p float64) bool { return w.Rand.Float64() < p }

// Fail records a violated condition, if it is the first.
func (w *kernel) Fail(format string, a ...any) {
	if w.Violation == "" {
		w.Violation = fmt.Sprintf(format, a...)
	}
}

// Trace adds values to the Hash.
func (w *kernel) Trace(values ...int64) {
	for _, v := range values {
		w.Hash = (w.Hash ^ uint64(v)) * 0x100000001b3
		w.Hash ^= w.Hash >> 29
	}
}

// A kernelEvent is something that will happen.
type kernelEvent struct {
	at    int64
	token int
	do    func()
}

// A kernelQueue is a heap of events, the earliest first.
type kernelQueue []kernelEvent

func (q kernelQueue) Len() int { return len(q) }
func (q kernelQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].token < q[j].token
}
func (q kernelQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *kernelQueue) Push(x any)   { *q = append(*q, x.(kernelEvent)) }
func (q *kernelQueue) Pop() any {
	old := *q
	last := len(old) - 1
	e := old[last]
	old[last] = kernelEvent{}
	*q = old[:last]
	return e
}

// recordField returns the text after a name in a record of the protocol, up to
// the next comma. The protocol writes these records itself, so values contain
// no commas and no names.
func recordField(value []byte, name string) string {
	i := bytes.Index(value, []byte(name))
	if i < 0 {
		return ""
	}
	rest := value[i+len(name):]
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, `"`))
}
