package records

import (
	"runtime"
	"sync"
)

// An Ordered turns items into records on all processors, and writes the records
// in the order of the items. It must be made by NewOrdered and closed with
// Close, and is not safe for concurrent use.
type Ordered[T any] struct {
	out     *Writer
	work    chan *batch[T]
	filling *batch[T]
	queue   []*batch[T] // in progress, the oldest first
	free    []*batch[T]
	workers sync.WaitGroup
}

// A batch holds items, and then their records.
type batch[T any] struct {
	items []T
	text  []byte
	ends  []int // ends of the records in text
	done  chan struct{}
}

// batchItems is large enough that handing a batch over costs little per item,
// and small enough that all batches together stay small.
const batchItems = 256

// NewOrdered starts the workers. Each has its own function, which appends the
// record of an item.
func NewOrdered[T any](out *Writer, worker func() func(b []byte, item T) []byte) *Ordered[T] {
	n := runtime.GOMAXPROCS(0)
	o := &Ordered[T]{out: out, work: make(chan *batch[T], n)}
	for range n + 2 {
		o.free = append(o.free, &batch[T]{items: make([]T, 0, batchItems), done: make(chan struct{}, 1)})
	}
	for range n {
		record := worker()
		o.workers.Go(func() {
			for b := range o.work {
				b.text, b.ends = b.text[:0], b.ends[:0]
				for _, item := range b.items {
					b.text = record(b.text, item)
					b.ends = append(b.ends, len(b.text))
				}
				b.done <- struct{}{}
			}
		})
	}
	return o
}

// Add adds an item.
func (o *Ordered[T]) Add(item T) error {
	if o.filling == nil {
		if len(o.free) == 0 {
			if err := o.write(); err != nil {
				return err
			}
		}
		last := len(o.free) - 1
		o.filling, o.free = o.free[last], o.free[:last]
	}
	o.filling.items = append(o.filling.items, item)
	if len(o.filling.items) == batchItems {
		o.hand()
	}
	return nil
}

// hand passes the filled batch on.
func (o *Ordered[T]) hand() {
	if o.filling != nil {
		o.queue = append(o.queue, o.filling)
		o.work <- o.filling
		o.filling = nil
	}
}

// write waits for the oldest batch and writes it.
func (o *Ordered[T]) write() error {
	b := o.queue[0]
	o.queue = append(o.queue[:0], o.queue[1:]...)
	<-b.done
	begin := 0
	for _, end := range b.ends {
		if _, err := o.out.Write(b.text[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	clear(b.items)
	b.items = b.items[:0]
	o.free = append(o.free, b)
	return nil
}

// Flush writes the records of all items so far.
func (o *Ordered[T]) Flush() error {
	o.hand()
	for len(o.queue) > 0 {
		if err := o.write(); err != nil {
			return err
		}
	}
	return o.out.Flush()
}

// Close ends the workers.
func (o *Ordered[T]) Close() {
	close(o.work)
	o.workers.Wait()
}
