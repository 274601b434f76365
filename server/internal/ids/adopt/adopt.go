// Package adopt prepares a move from another generator: it reads the IDs that
// exist, and finds node IDs that the other generator does not use. It decides
// from IDs alone; creating the sequencer is up to the caller.
package adopt

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/check"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// sample is how many IDs decide about the layout.
const sample = 10_000

// Options say how to read IDs.
type Options struct {
	Layout firn.Layout // the zero Layout: as judged by the first IDs
	From   inspect.Encoding
	Now    time.Time
	Memory uint64 // for the search for duplicates; see check.Options
}

// A Report says what a stream of IDs has.
type Report struct {
	check.Report
	Layout firn.Layout
	Nodes  []uint64 // the node IDs in use, in ascending order
}

// ErrUnknown means that the IDs fit no known layout.
var ErrUnknown = errors.New("the IDs fit no known layout")

// A Reader reads a stream of IDs. It must be made by NewReader, and is not safe
// for concurrent use.
type Reader struct {
	o       Options
	summary *inspect.Summary
	first   []string // the sample, until the layout is known
	checker *check.Checker
	nodes   map[uint64]struct{}
}

// NewReader makes a Reader.
func NewReader(o Options) *Reader {
	return &Reader{o: o, summary: inspect.NewSummary(inspect.Options{Layout: o.Layout, From: o.From}, o.Now), nodes: make(map[uint64]struct{})}
}

// Add adds the next ID. After a *check.IDError the next one can be added.
func (r *Reader) Add(text string) error {
	if r.checker != nil {
		return r.add(text)
	}
	if err := r.summary.Add(text); err != nil {
		return &check.IDError{Err: err}
	}
	if r.first = append(r.first, text); len(r.first) < sample {
		return nil
	}
	return r.judge()
}

// judge determines the layout, and adds the sample.
func (r *Reader) judge() error {
	if r.o.Layout.IsZero() {
		r.o.Layout = r.summary.Report().Layout
	}
	if r.o.Layout.IsZero() {
		return ErrUnknown
	}
	if r.o.Layout.ReadOnly() {
		return inspect.ReadOnlyError(r.o.Layout)
	}
	r.checker = check.New(check.Options{Layout: r.o.Layout, From: r.o.From, Bits: r.o.Layout.Bits(), Memory: r.o.Memory})
	for _, text := range r.first {
		err := r.add(text)
		if errors.As(err, new(*check.IDError)) {
			return fmt.Errorf("%w: most have that of %v, but %v", ErrUnknown, r.o.Layout, err)
		}
		if err != nil {
			return err
		}
	}
	r.first = nil
	return nil
}

func (r *Reader) add(text string) error {
	if err := r.checker.AddText(text); err != nil {
		return err
	}
	b, _, err := inspect.Decode(text, r.o.From, r.o.Layout.Bits())
	if err != nil {
		return &check.IDError{Err: err}
	}
	if p, err := r.o.Layout.DecomposeBytes(b); err == nil { // the checker counts others
		r.nodes[p.Node] = struct{}{}
	}
	return nil
}

// Report ends the stream. The error is ErrUnknown, or says why IDs of the
// layout cannot be made.
func (r *Reader) Report() (Report, error) {
	if r.checker == nil {
		if err := r.judge(); err != nil {
			return Report{}, err
		}
	}
	report := Report{Report: r.checker.Report(), Layout: r.o.Layout}
	for node := range r.nodes {
		report.Nodes = append(report.Nodes, node)
	}
	slices.Sort(report.Nodes)
	return report, nil
}

// Free returns the largest block of node IDs that are not in use: a half of all
// node IDs, a quarter and so on, and the highest one of that size. ok is false
// if all are in use.
func (r *Report) Free() (lo, hi uint64, ok bool) {
	for bits := r.Layout.NodeBits() - 1; bits >= 0; bits-- {
		used := make(map[uint64]bool)
		for _, node := range r.Nodes {
			used[node>>bits] = true
		}
		last := r.Layout.MaxNode() >> bits
		if uint64(len(used)) > last {
			continue
		}
		block := last
		for used[block] {
			block--
		}
		return block << bits, block<<bits | (1<<bits - 1), true
	}
	return 0, 0, false
}

// Meets returns the node IDs in use from lo to hi.
func (r *Report) Meets(lo, hi uint64) []uint64 {
	from, _ := slices.BinarySearch(r.Nodes, lo)
	to := from
	for to < len(r.Nodes) && r.Nodes[to] <= hi {
		to++
	}
	return r.Nodes[from:to]
}

// Floor returns a time, in whole milliseconds, that all IDs lie before.
func (r *Report) Floor() time.Time {
	floor := r.Last.Add(r.Layout.Unit())
	if whole := floor.Truncate(time.Millisecond); whole != floor {
		return whole.Add(time.Millisecond)
	}
	return floor
}
