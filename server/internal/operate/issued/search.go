package issued

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
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

// maxMargin is 34 years: more than any clock is wrong.
const maxMargin = 1 << 30 * time.Second

// forever is after the time of each ID.
var forever = time.Unix(1<<40, 0)

// A Query is an ID to search for.
type Query struct {
	Text string
	As   []*form.Decoding // the ways to read it, the likeliest first

	Found []Record // the lines with the ID, without their IDs and with their server
	other string   // a sequencer of such a line that is not the one of the Search
}

// A Search looks for IDs in logs: Read them all, in any order, then ask for
// each Judge.
type Search struct {
	Queries   []*Query
	Sequencer string // only IDs of this one; "" means all
	Bad       int    // lines that are not of a log, such as the last one of a killed server

	// Complete means that no server gave IDs before its first start or after
	// its end: none ran without a log, and the logs are all there.
	Complete bool

	sought    []sought // the IDs of Queries, in order; nil until Read
	layouts   map[string]firn.Layout
	layoutsOf map[string]map[string]bool // layouts, by sequencer
	logs      map[string]*stream
	holes     []hole // nil until all was read
}

// A sought is an ID to look for: a Query has one for each way to read it.
type sought struct {
	id    form.ID
	query *Query
}

// compare compares IDs as numbers, those of 64 bits before those of 128.
func compare(a, b form.ID) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// A stream is the log of one process.
type stream struct {
	server string
	parts  []part
	from   time.Time
	to     time.Time // of all lines
	margin time.Duration
	using  map[string]bool // layouts
	nodes  map[node]bool
	ended  uint64 // the line that says so; 0 without one
}

// A node is a node ID in a layout.
type node struct {
	layout string
	id     uint64
}

// A part is lines of which none is missing.
type part struct {
	first, last uint64
	begin, end  time.Time // of these lines; with a clock that went back, end may be the earlier one
}

// ErrCut is the error of a compressed log without its end. Its lines count.
var ErrCut = errors.New("the end of the compressed file is missing; its other lines were read")

// Read reads a log, which may be compressed with gzip. Afterwards Queries must
// not change.
func (s *Search) Read(r io.Reader) error {
	in, err := decompress(r)
	if err == io.ErrUnexpectedEOF {
		return ErrCut
	} else if err != nil {
		return err
	}
	if s.logs == nil {
		s.logs = make(map[string]*stream)
		s.layouts, s.layoutsOf = make(map[string]firn.Layout), make(map[string]map[string]bool)
		for _, q := range s.Queries {
			for _, n := range q.As {
				s.sought = append(s.sought, sought{n.Bytes, q})
			}
		}
		slices.SortFunc(s.sought, func(a, b sought) int { return compare(a.id, b.id) })
	}
	good, bad := 0, s.Bad
	s.holes = nil
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if x, ok := parse(line); !ok || s.add(&x) != nil {
				s.Bad++
			} else {
				good++
			}
		}
		switch {
		case err == io.EOF && good == 0 && s.Bad > bad:
			return errors.New("it is not an issue log, or compressed in another way than by gzip")
		case err == io.EOF:
			return nil
		case err == io.ErrUnexpectedEOF:
			return ErrCut
		case err != nil:
			return err
		}
	}
}

// decompress returns the text of a log.
func decompress(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	magic, err := in.Peek(2)
	if string(magic) != "\x1f\x8b" {
		if err == io.EOF {
			err = nil
		}
		return in, err
	}
	z, err := gzip.NewReader(in)
	return bufio.NewReaderSize(z, 1<<20), err
}

// parse parses a line of a log.
func parse(line []byte) (x Record, ok bool) {
	ok = json.Unmarshal(line, &x) == nil && x.Log != "" && x.N > 0 && !x.Time.IsZero()
	return x, ok
}

// IsLine reports whether a text is a line of a log. No ID is.
func IsLine(text string) bool {
	_, ok := parse([]byte(text))
	return ok
}

// maxForeign is how far IsLog looks for a line: the first may have been cut.
const maxForeign = 4 << 20

// IsLog reports whether a path is that of a log, which may be compressed with
// gzip: it has a line of one near its beginning, or is compressed and ends
// before that. A pipe is not read for that, and is not a log.
func IsLog(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := decompress(f)
	if err != nil {
		return err == io.ErrUnexpectedEOF
	}
	for in := bufio.NewReader(io.LimitReader(text, maxForeign)); err == nil; {
		var line []byte
		line, err = in.ReadBytes('\n')
		if _, ok := parse(line); ok {
			return true
		}
	}
	return err == io.ErrUnexpectedEOF
}

// add adds a line. It changes nothing if the line is damaged.
func (s *Search) add(x *Record) error {
	l, from, to := firn.Layout{}, x.Time, x.Time
	var nodes []node
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
			for _, id := range []form.ID{r.first, r.last} {
				p, err := l.DecomposeBytes(id)
				if err != nil {
					return err
				}
				from, to = earlier(from, p.Time), later(to, p.Time)
				nodes = append(nodes, node{x.Layout, p.Node})
			}
		}
		if s.layoutsOf[x.Sequencer] == nil {
			s.layoutsOf[x.Sequencer] = make(map[string]bool)
		}
		s.layoutsOf[x.Sequencer][x.Layout] = true
		s.match(x, runs)
	}
	q := s.logs[x.Log]
	if q == nil {
		q = &stream{margin: margin, using: make(map[string]bool), nodes: make(map[node]bool)}
		s.logs[x.Log] = q
	}
	q.margin = min(max(q.margin, x.Time.Sub(from), to.Sub(x.Time)), maxMargin)
	q.server = cmp.Or(x.Server, q.server)
	if q.from.IsZero() {
		q.from, q.to = x.Time, x.Time
	}
	q.from, q.to = earlier(q.from, x.Time), later(q.to, x.Time)
	if x.Event == "" {
		q.using[x.Layout] = true
		for _, n := range nodes {
			q.nodes[n] = true
		}
	} else if x.Event == "end" {
		q.ended = x.N
	}
	if n := len(q.parts); n > 0 && q.parts[n-1].last+1 == x.N {
		p := &q.parts[n-1]
		p.last, p.end = x.N, x.Time
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

// A run is a Run whose IDs were read.
type run struct {
	first, last form.ID
	step, count uint64
}

func runsOf(l *firn.Layout, x *Record) ([]run, error) {
	if l.ReadOnly() {
		return nil, errors.New("nobody makes such IDs")
	}
	as := form.Of(l.Format())
	var runs []run
	add := func(text string, step, count uint64) error {
		found, err := as.Decodings(text, l.Bits())
		if err != nil {
			return err
		}
		first := found[0].Bytes
		r := run{first, lastOf(first, max(step, 1), count), max(step, 1), count}
		hi, _ := bits.Mul64(r.step, count-1)
		if count == 0 || step == 0 && count > 1 || hi > 0 && l.Bits() == 64 || compare(r.first, r.last) > 0 {
			return errors.New("no run of IDs")
		}
		runs = append(runs, r)
		return nil
	}
	for _, r := range x.Runs {
		if err := add(r.First, uint64(r.Step), r.Count); err != nil {
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

// lastOf returns the last ID of a run. Its number may have wrapped around.
func lastOf(first form.ID, step, count uint64) form.ID {
	hi, lo := bits.Mul64(step, count-1)
	firstHi, firstLo := first.Number().Uint64s()
	lo, carry := bits.Add64(firstLo, lo, 0)
	last := firn.ID128FromUint64s(firstHi+hi+carry, lo)
	return last[16-len(first):]
}

// has reports whether a run has an ID from its first to its last.
func (r *run) has(id form.ID) bool {
	hi, lo := id.Number().Uint64s()
	firstHi, firstLo := r.first.Number().Uint64s()
	lo, borrow := bits.Sub64(lo, firstLo, 0)
	if hi -= firstHi + borrow; hi >= r.step {
		return false
	}
	_, rest := bits.Div64(hi, lo, r.step)
	return rest == 0
}

// match adds the line to the Queries that it answers.
func (s *Search) match(x *Record, runs []run) {
	for _, r := range runs {
		at, _ := slices.BinarySearchFunc(s.sought, r.first, func(x sought, id form.ID) int { return compare(x.id, id) })
		for _, y := range s.sought[at:] {
			if compare(y.id, r.last) > 0 {
				break
			}
			if r.has(y.id) {
				y.query.add(s, x)
			}
		}
	}
}

// add adds a line with the ID, once.
func (q *Query) add(s *Search, x *Record) {
	if s.Sequencer != "" && s.Sequencer != x.Sequencer {
		q.other = x.Sequencer
		return
	}
	if slices.ContainsFunc(q.Found, func(r Record) bool { return r.Log == x.Log && r.N == x.N }) {
		return
	}
	found := *x
	found.Runs, found.IDs = nil, nil
	q.Found = append(q.Found, found)
}

// A Verdict is what the logs say about an ID.
type Verdict struct {
	Is       string    // Issued, NotIssued or NotCovered
	Readings []Reading // in each layout of the logs that has such an ID; none if it is Issued
	Reason   string    // why there is no Reading
}

// A Reading is an ID in a layout.
type Reading struct {
	Layout  string    `json:"layout"`
	Time    time.Time `json:"time"`              // that the logs would have to cover
	Reasons []string  `json:"reasons,omitempty"` // why they do not, the likeliest first; nil if they do

	// Stranger is its node ID if no line in the logs has that: perhaps another
	// server made it.
	Stranger *uint64 `json:"unknown_node,omitempty"`
}

// Judge returns the verdict on an ID. Only the layouts of lines in the logs are
// known, and of those only the ones of the Sequencer.
func (s *Search) Judge(q *Query) (v Verdict) {
	if len(q.Found) > 0 {
		for i := range q.Found {
			q.Found[i].Server = s.logs[q.Found[i].Log].server
		}
		return Verdict{Is: Issued}
	}
	layouts := s.layoutsOf[s.Sequencer]
	switch {
	case len(s.logs) == 0:
		return Verdict{Is: NotCovered, Reason: "the logs have no lines"}
	case q.other != "":
		return Verdict{Is: NotIssued, Reason: "it was issued by sequencer " + q.other}
	case s.Sequencer == "":
		layouts = make(map[string]bool)
		for text := range s.layouts {
			layouts[text] = true
		}
	case layouts == nil:
		return Verdict{Is: NotCovered, Reason: fmt.Sprintf("the logs have no lines of sequencer %s, only of %s", s.Sequencer,
			cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.layoutsOf)), ", "), "none"))}
	}
	if s.holes == nil {
		s.findHoles()
	}
	v.Is = NotIssued
	for _, text := range slices.Sorted(maps.Keys(layouts)) {
		l := s.layouts[text]
		for _, n := range q.As {
			if p, err := l.DecomposeBytes(n.Bytes); err == nil {
				r := s.read(text, &l, p)
				v.Readings = append(v.Readings, r)
				if r.Reasons != nil { // it may have been made then
					v.Is = NotCovered
				}
			}
		}
	}
	if v.Readings == nil {
		known := cmp.Or(strings.Join(slices.Sorted(maps.Keys(layouts)), " or "), "(none in the logs)")
		return Verdict{Is: NotCovered, Reason: "it is no ID of layout " + known + ": it may be mistyped, or of a " +
			"server or sequencer whose logs are not here"}
	}
	return v
}

// read returns what the logs say of the parts of an ID in a layout.
func (s *Search) read(text string, l *firn.Layout, p firn.Parts) Reading {
	r, to := Reading{Layout: text, Time: p.Time}, p.Time.Add(l.Unit())
	at := node{text, p.Node}
	isKnown, isBetween := l.MaxNode() == 0, false
	for _, q := range s.logs {
		isKnown = isKnown || q.nodes[at]
		isBetween = isBetween || q.using[text] && !p.Time.Before(q.from.Add(q.margin)) && !to.After(q.to.Add(-q.margin))
	}
	if !isKnown {
		r.Stranger = &p.Node
	}
	r.Reasons = s.reasons(at, p.Time, to)
	if r.Reasons == nil && !isBetween && !s.Complete {
		r.Reasons = []string{"no log has lines from a minute before it and from a minute after it"}
	}
	return r
}

// Servers returns the servers whose logs were read.
func (s *Search) Servers() []string {
	names := make(map[string]bool)
	for _, q := range s.logs {
		names[cmp.Or(q.server, "(unknown)")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// findHoles finds the holes of all logs, once they were read.
func (s *Search) findHoles() {
	starts := make(map[string][]time.Time) // of processes, by server
	first := make(map[string]time.Time)    // line, by server
	ids := slices.Sorted(maps.Keys(s.logs))
	for _, id := range ids {
		q := s.logs[id]
		slices.SortFunc(q.parts, func(a, b part) int { return cmp.Compare(a.first, b.first) })
		begin := q.parts[0].begin
		if q.parts[0].first == 1 {
			starts[q.server] = append(starts[q.server], begin)
		}
		if at, ok := first[q.server]; !ok || begin.Before(at) {
			first[q.server] = begin
		}
	}
	s.holes = []hole{}
	for _, id := range ids {
		q := s.logs[id]
		server := "server " + cmp.Or(q.server, "(unknown)")
		name := fmt.Sprintf("log %s of %s", id, server)
		add := func(from, to time.Time, format string, args ...any) {
			s.holes = append(s.holes, hole{earlier(from, to), later(from, to), q, fmt.Sprintf(format, args...)})
		}
		begin, end, last := q.parts[0].begin, q.parts[0].end, q.parts[0].last
		switch {
		case q.parts[0].first != 1:
			add(time.Time{}, begin, "%s has no lines before %s", name, textfmt.Stamp(begin))
		case s.Complete:
		case begin.Equal(first[q.server]): // it may have run without a log, or its older files are gone
			add(time.Time{}, begin, "%s has no log before %s", server, textfmt.Stamp(begin))
		}
		for _, p := range q.parts[1:] {
			if p.first > last+1 {
				add(end, p.begin, "%s has no lines from %s to %s", name, textfmt.Stamp(end), textfmt.Stamp(p.begin))
			}
			if p.last > last {
				last, end = p.last, p.end
			}
		}
		if s.Complete && q.ended == last {
			continue
		}
		// Still running, or ended, and then perhaps started without a log that
		// is here: until the next start that is.
		next := forever
		for _, t := range starts[q.server] {
			if t.After(end) {
				next = earlier(next, t)
			}
		}
		how := "was killed or still running"
		if q.ended == last {
			how = "ended"
		}
		if next.Equal(forever) {
			add(end, next, "%s has no log after %s, when it %s", server, textfmt.Stamp(end), how)
		} else {
			add(end, next, "%s has no log from %s, when it %s, to its start at %s",
				server, textfmt.Stamp(end), how, textfmt.Stamp(next))
		}
	}
}

// A hole is a time of which a log may lack lines, if clocks differ by less than
// its margin.
type hole struct {
	from, to time.Time
	log      *stream
	text     string
}

// away returns how far a time is from the hole: 0 if it is in it.
func (h *hole) away(from, to time.Time) time.Duration {
	return max(h.from.Sub(to), from.Sub(h.to), 0)
}

// reasons returns why logs may lack lines of a time: holes around it first, and
// of these the ones of a log with the node ID.
func (s *Search) reasons(at node, from, to time.Time) (reasons []string) {
	var near []hole
	for _, hasNode := range []bool{true, false} {
		for _, h := range s.holes {
			if h.log.nodes[at] == hasNode && h.away(from, to) <= h.log.margin {
				near = append(near, h)
			}
		}
	}
	slices.SortStableFunc(near, func(a, b hole) int { return cmp.Compare(a.away(from, to), b.away(from, to)) })
	for _, h := range near {
		if d := h.away(from, to); d > 0 {
			h.text += fmt.Sprintf(" (%v away, and clocks may be wrong by %v)", d.Round(time.Millisecond),
				h.log.margin.Round(time.Millisecond))
		}
		reasons = append(reasons, h.text)
	}
	return reasons
}
