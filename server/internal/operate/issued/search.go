package issued

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// The verdicts.
const (
	Issued     = "issued"
	NotIssued  = "not-issued"  // by these servers, while their logs cover the time
	NotCovered = "not-covered" // by the logs
)

// margin is how far the time of an ID may be from that of its line, at least;
// if it was farther in a log, that is the margin for that log.
const margin = time.Minute

// A Query is an ID to search for.
type Query struct {
	Text string
	As   []*form.Decoding // the ways to read it, the likeliest first

	Found []Record // the lines with the ID, without their IDs and with their server
}

// A Search looks for IDs in logs: Read them all, in any order, then ask for each
// Judge.
type Search struct {
	Queries   []*Query
	Sequencer string // only IDs of this one; "" means all
	Bad       int    // lines that are not of a log, such as the last one of a killed server

	layouts map[string]firn.Layout
	logs    map[string]*stream
}

// A stream is the log of one process.
type stream struct {
	server string
	parts  []part
	ended  uint64 // number of its last line; 0 if it has no end
	margin time.Duration
	using  map[string]bool // layouts
}

// A part is lines of which none is missing.
type part struct {
	first, last uint64
	from, to    time.Time
}

// Read reads a log.
func (s *Search) Read(r io.Reader) error {
	if s.logs == nil {
		s.layouts, s.logs = make(map[string]firn.Layout), make(map[string]*stream)
	}
	for in := bufio.NewReaderSize(r, 1<<20); ; {
		line, err := in.ReadSlice('\n')
		var long []byte
		for errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			line, err = in.ReadSlice('\n')
		}
		if long != nil {
			line = append(long, line...)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var x Record
			if json.Unmarshal(line, &x) != nil || x.Log == "" || x.N == 0 || s.add(&x) != nil {
				s.Bad++
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add adds a line. It changes nothing if the line is damaged.
func (s *Search) add(x *Record) error {
	l, from, to := firn.Layout{}, x.Time, x.Time
	if x.Event == "" {
		var ok bool
		if l, ok = s.layouts[x.Layout]; !ok {
			var err error
			if l, err = firn.ParseLayout(x.Layout); err != nil {
				return err
			}
			s.layouts[x.Layout] = l
		}
		runs, err := runsOf(&l, x)
		if err != nil {
			return err
		}
		for _, r := range runs {
			for _, id := range []form.ID{r.first, r.last()} {
				p, err := l.DecomposeBytes(id)
				if err != nil {
					return err
				}
				from, to = earlier(from, p.Time), later(to, p.Time)
			}
		}
		s.match(&l, x, runs)
	}
	q := s.logs[x.Log]
	if q == nil {
		q = &stream{margin: margin, using: make(map[string]bool)}
		s.logs[x.Log] = q
	}
	q.margin = max(q.margin, x.Time.Sub(from), to.Sub(x.Time))
	q.server = cmp.Or(x.Server, q.server)
	if x.Event == "" {
		q.using[x.Layout] = true
	} else if x.Event == "end" {
		q.ended = x.N
	}
	if n := len(q.parts); n > 0 && q.parts[n-1].last+1 == x.N {
		p := &q.parts[n-1]
		p.last, p.from, p.to = x.N, earlier(p.from, x.Time), later(p.to, x.Time)
	} else {
		q.parts = append(q.parts, part{x.N, x.N, x.Time, x.Time})
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A run is a Run whose first ID was read.
type run struct {
	first       form.ID
	step, count uint64
}

func runsOf(l *firn.Layout, x *Record) ([]run, error) {
	as := form.Of(l.Format())
	var runs []run
	add := func(text string, step, count uint64) error {
		found, err := as.Decodings(text, l.Bits())
		if err == nil && count == 0 {
			err = errors.New("an empty run")
		}
		if err == nil {
			runs = append(runs, run{found[0].Bytes, step, count})
		}
		return err
	}
	for _, r := range x.Runs {
		if err := add(r.First, r.Step, r.Count); err != nil {
			return nil, err
		}
	}
	for _, id := range x.IDs {
		if err := add(id, 1, 1); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// wide returns an ID of 64 or 128 bits as a number.
func wide(id form.ID) (hi, lo uint64) {
	if len(id) == 16 {
		hi = binary.BigEndian.Uint64(id)
	}
	return hi, binary.BigEndian.Uint64(id[len(id)-8:])
}

func (r *run) last() form.ID {
	hi, lo := bits.Mul64(r.step, r.count-1)
	firstHi, firstLo := wide(r.first)
	lo, carry := bits.Add64(firstLo, lo, 0)
	b := binary.BigEndian.AppendUint64(nil, firstHi+hi+carry)
	return form.ID(binary.BigEndian.AppendUint64(b, lo))[16-len(r.first):]
}

func (r *run) has(id form.ID) bool {
	if len(id) != len(r.first) {
		return false
	}
	hi, lo := wide(id)
	firstHi, firstLo := wide(r.first)
	lo, borrow := bits.Sub64(lo, firstLo, 0)
	hi, borrow = bits.Sub64(hi, firstHi, borrow)
	if borrow != 0 || hi >= max(r.step, 1) {
		return false
	}
	n, rest := bits.Div64(hi, lo, max(r.step, 1))
	return rest == 0 && n < r.count
}

// match adds the line to the Queries that it answers.
func (s *Search) match(l *firn.Layout, x *Record, runs []run) {
	if s.Sequencer != "" && s.Sequencer != x.Sequencer {
		return
	}
	for _, q := range s.Queries {
		is := func(n *form.Decoding) bool {
			return slices.ContainsFunc(runs, func(r run) bool { return r.has(n.Bytes) })
		}
		if slices.ContainsFunc(q.As, is) {
			found := *x
			found.Runs, found.IDs = nil, nil
			q.Found = append(q.Found, found)
		}
	}
}

// Judge returns the verdict on an ID, with its time (zero if no layout in the
// logs has such an ID), and why the logs do not cover it.
func (s *Search) Judge(q *Query) (verdict string, at time.Time, reason string) {
	if len(q.Found) > 0 {
		for i := range q.Found {
			q.Found[i].Server = s.logs[q.Found[i].Log].server
		}
		return Issued, at, ""
	}
	verdict, reason = NotCovered, "no layout in the logs has such an ID"
	for _, text := range slices.Sorted(maps.Keys(s.layouts)) {
		l := s.layouts[text]
		for _, n := range q.As {
			p, err := l.DecomposeBytes(n.Bytes)
			if err != nil {
				continue
			}
			gap, covered := s.covers(text, p.Time, p.Time.Add(l.Unit()))
			switch {
			case gap != "": // it may have been made then
				return NotCovered, p.Time, gap
			case covered && verdict == NotCovered:
				verdict, at, reason = NotIssued, p.Time, ""
			case verdict == NotCovered:
				at, reason = p.Time, "no log has lines of before and after that"
			}
		}
	}
	return verdict, at, reason
}

// covers reports whether some log has lines of a layout from before and after
// the time, and which log may lack lines of that time.
func (s *Search) covers(layout string, from, to time.Time) (gap string, covered bool) {
	starts := make(map[string][]time.Time) // by server
	for _, q := range s.logs {
		slices.SortFunc(q.parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
		if q.parts[0].first == 1 {
			starts[q.server] = append(starts[q.server], q.parts[0].from)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.logs)) {
		q := s.logs[id]
		meets := func(begin, end time.Time) bool {
			return !from.Add(-q.margin).After(end) && !to.Add(q.margin).Before(begin)
		}
		name := fmt.Sprintf("log %s of server %s", id, cmp.Or(q.server, "(unknown)"))
		begin, end, last := q.parts[0].from, q.parts[0].to, q.parts[0].last
		if q.parts[0].first != 1 && meets(time.Time{}, begin) {
			return name + " has no beginning", false
		}
		for _, p := range q.parts[1:] {
			if p.first > last+1 && meets(end, p.from) {
				return fmt.Sprintf("%s has no lines from %s to %s", name, Stamp(end), Stamp(p.from)), false
			}
			last, begin, end = max(last, p.last), earlier(begin, p.from), later(end, p.to)
		}
		if q.ended != last { // killed, or still running: until the server was started again
			next := later(to, end).Add(2 * q.margin)
			for _, t := range starts[q.server] {
				if t.After(end) {
					next = earlier(next, t)
				}
			}
			if meets(end, next) {
				return name + " ends at " + Stamp(end) + " without the line of an orderly end", false
			}
		}
		covered = covered || q.using[layout] && !from.Before(begin.Add(q.margin)) && !to.After(end.Add(-q.margin))
	}
	return "", covered
}

// Stamp writes a time of a log.
func Stamp(t time.Time) string { return inspect.Stamp(t, time.Millisecond) }
