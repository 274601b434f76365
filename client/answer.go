package client

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/firnid/firn"
)

// Answers are parsed strictly: anything other than exactly the requested number
// of IDs, each of them once, is an error. But members that this version does
// not know are allowed, because servers may be newer than their clients.

// A number is an ID of either width.
type number struct{ hi, lo uint64 }

func compareNumbers(a, b number) int {
	return cmp.Or(cmp.Compare(a.hi, b.hi), cmp.Compare(a.lo, b.lo))
}

// plus returns a + step*n, and whether it fits 128 bits.
func (a number) plus(step, n uint64) (sum number, ok bool) {
	hi, lo := bits.Mul64(step, n)
	var carry uint64
	sum.lo, carry = bits.Add64(a.lo, lo, 0)
	sum.hi, carry = bits.Add64(a.hi, hi, carry)
	return sum, carry == 0
}

// idSize returns the size of an ID in bytes.
func idSize[I firn.AnyID[I]]() int {
	var id I
	if _, ok := any(id).(firn.ID); ok {
		return 8
	}
	return 16
}

// idOf returns a number as an ID. It must fit.
func idOf[I firn.AnyID[I]](n number) (id I) {
	switch p := any(&id).(type) {
	case *firn.ID:
		*p = firn.ID(n.lo)
	case *firn.ID128:
		*p = firn.ID128FromUint64s(n.hi, n.lo)
	}
	return id
}

// A span is a run of an answer: the numbers from first to last in steps.
type span struct {
	first, last number
	step        uint64
	count       int
}

// newSpan returns a span of IDs of size bytes, or an error if it is invalid.
func newSpan(first number, step uint64, count, size int) (span, error) {
	switch last, ok := first.plus(step, uint64(count)-1); {
	case count < 1:
		return span{}, fmt.Errorf("a run has %d IDs", count)
	case first == number{}:
		return span{}, errors.New("a run begins with the ID 0, which is never made")
	case step == 0:
		return span{}, errors.New("a run has a step of 0 and would repeat its ID")
	case !ok || size == 8 && last.hi > 0:
		return span{}, errors.New("a run exceeds the greatest ID")
	default:
		return span{first, last, step, count}, nil
	}
}

// checkDisjoint returns an error if two spans have an ID in common. In most
// layouts spans ascend. In a layout whose time is not on top, they come in any
// order and may be interleaved.
func checkDisjoint(spans []span) error {
	ascend := func(spans []span) bool {
		for i := 1; i < len(spans); i++ {
			if compareNumbers(spans[i-1].last, spans[i].first) >= 0 {
				return false
			}
		}
		return true
	}
	if ascend(spans) {
		return nil
	}
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b span) int { return compareNumbers(a.first, b.first) })
	if ascend(sorted) {
		return nil
	}
	total := 0
	for _, s := range sorted {
		total += s.count
	}
	all := make([]number, 0, total)
	for _, s := range sorted {
		for i := range s.count {
			n, _ := s.first.plus(s.step, uint64(i))
			all = append(all, n)
		}
	}
	slices.SortFunc(all, compareNumbers)
	if len(slices.Compact(all)) < total {
		return errors.New("it contains an ID twice")
	}
	return nil
}

// maxAnswer returns the maximum size of an answer with runs of n IDs in total:
// the longest run has 97 bytes, and the server adds a few more around all of
// them.
func maxAnswer(n int) int { return 1024 + 128*n }

// parseRuns parses {"runs":[{"first":"…","step":"…","count":…}]} with a total
// of count IDs. IDs are hexadecimal with all their digits.
func parseRuns[I firn.AnyID[I]](data []byte, count int) ([]firn.RunOf[I], error) {
	size := idSize[I]()
	p := parser{data: data}
	all := collector{count: count}
	found := false
	err := p.object(func(key string) error {
		if key != "runs" {
			return p.skip()
		}
		if found {
			return p.errorf("runs occur twice")
		}
		found = true
		return p.list('[', ']', func() error {
			first, step, count, err := p.run()
			if err != nil {
				return err
			}
			return all.addText(first, step, count, size)
		})
	})
	if err != nil {
		return nil, err
	}
	switch p.space(); {
	case p.pos < len(data):
		return nil, p.errorf("there is data after the end")
	case !found:
		return nil, errors.New("it has no runs")
	}
	if err := all.end(); err != nil {
		return nil, err
	}
	return runsOf[I](all.spans)
}

// A collector collects the runs of an answer that should have count IDs.
type collector struct {
	count, total int
	spans        []span
}

// addText adds a run of IDs of size bytes in the form that servers write.
func (c *collector) addText(first, step, count string, size int) error {
	n, err := parseHex(first, size)
	if err != nil {
		return err
	}
	by, err := parseDecimal(step, 64)
	if err != nil {
		return fmt.Errorf("the step of a run: %w", err)
	}
	ids, err := parseDecimal(count, 31)
	if err != nil {
		return fmt.Errorf("the count of a run: %w", err)
	}
	s, err := newSpan(n, by, int(ids), size)
	if err != nil {
		return err
	}
	if s.count > c.count-c.total {
		return fmt.Errorf("it has more IDs than the %d requested", c.count)
	}
	c.total += s.count
	c.spans = append(c.spans, s)
	return nil
}

// end returns an error if IDs are missing.
func (c *collector) end() error {
	if c.total != c.count {
		return fmt.Errorf("it has %d IDs, not the %d requested", c.total, c.count)
	}
	return nil
}

// runsOf returns the runs of spans that have no ID in common.
func runsOf[I firn.AnyID[I]](spans []span) ([]firn.RunOf[I], error) {
	if err := checkDisjoint(spans); err != nil {
		return nil, err
	}
	runs := make([]firn.RunOf[I], len(spans))
	for i, s := range spans {
		runs[i] = firn.RunOf[I]{First: idOf[I](s.first), Step: s.step, Count: s.count}
	}
	return runs, nil
}

// parsePacked parses count IDs, big-endian, with nothing between them.
func parsePacked[I firn.AnyID[I]](data []byte, count int) ([]firn.RunOf[I], error) {
	size := idSize[I]()
	if len(data) != count*size {
		return nil, fmt.Errorf("it has %d bytes, not the %d of %d IDs of %d bits", len(data), count*size, count, 8*size)
	}
	spans := make([]span, 0, count)
	for id := range slices.Chunk(data, size) {
		n := number{lo: binary.BigEndian.Uint64(id[size-8:])}
		if size == 16 {
			n.hi = binary.BigEndian.Uint64(id)
		}
		s, err := newSpan(n, 1, 1, size)
		if err != nil {
			return nil, errors.New("it has the ID 0, which is never made")
		}
		spans = append(spans, s)
	}
	return runsOf[I](spans)
}

// A parser parses the JSON of an answer. It is stricter than encoding/json,
// which takes the last of two members with one name, and accepts names in upper
// case.
type parser struct {
	data []byte
	pos  int
}

func (p *parser) errorf(format string, a ...any) error {
	return fmt.Errorf("offset %d: %s", p.pos, fmt.Sprintf(format, a...))
}

// space skips white space.
func (p *parser) space() {
	for p.pos < len(p.data) && bytes.IndexByte([]byte(" \t\r\n"), p.data[p.pos]) >= 0 {
		p.pos++
	}
}

// is skips white space and then the character c, if it is next.
func (p *parser) is(c byte) bool {
	p.space()
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// expect skips the character c, which must be next.
func (p *parser) expect(c byte) error {
	if !p.is(c) {
		if p.pos >= len(p.data) {
			return p.errorf("it ends where %q should be", c)
		}
		return p.errorf("found %q where %q should be", p.data[p.pos], c)
	}
	return nil
}

// list calls item to parse each item of a list.
func (p *parser) list(begin, end byte, item func() error) error {
	if err := p.expect(begin); err != nil {
		return err
	}
	if p.is(end) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.is(end) {
			return nil
		}
		if err := p.expect(','); err != nil {
			return err
		}
	}
}

// object calls member to parse the value of each member of an object.
func (p *parser) object(member func(key string) error) error {
	return p.list('{', '}', func() error {
		key, err := p.text()
		if err == nil {
			err = p.expect(':')
		}
		if err == nil {
			err = member(key)
		}
		return err
	})
}

// text parses a string of printable ASCII characters without escapes; servers
// write no others.
func (p *parser) text() (string, error) {
	if err := p.expect('"'); err != nil {
		return "", err
	}
	start := p.pos
	for ; p.pos < len(p.data); p.pos++ {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(p.data[start : p.pos-1]), nil
		case c < ' ' || c > '~' || c == '\\':
			return "", p.errorf("%q in a string", c)
		}
	}
	return "", p.errorf("it ends within a string")
}

// skip skips a value of any kind.
func (p *parser) skip() error {
	d := json.NewDecoder(bytes.NewReader(p.data[p.pos:]))
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return p.errorf("a member that is not JSON: %v", err)
	}
	p.pos += int(d.InputOffset())
	return nil
}

// run reads a run.
func (p *parser) run() (first, step, count string, err error) {
	known := map[string]*string{"first": &first, "step": &step, "count": &count}
	err = p.object(func(key string) error {
		value := known[key]
		if value == nil {
			return p.skip()
		}
		if *value != "" {
			return p.errorf("%s occurs twice", key)
		}
		var err error
		if key == "count" {
			*value = p.digits()
		} else {
			*value, err = p.text()
		}
		if err == nil && *value == "" {
			err = p.errorf("%s is empty", key)
		}
		return err
	})
	return first, step, count, err
}

// digits returns the digits of a number; a count consists of nothing else.
func (p *parser) digits() string {
	p.space()
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] >= '0' && p.data[p.pos] <= '9' {
		p.pos++
	}
	return string(p.data[start:p.pos])
}

// parseDecimal parses a number in the form that JSON and the server use.
func parseDecimal(text string, bits int) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, bits)
	switch {
	case text == "":
		return 0, errors.New("it is missing")
	case err != nil || len(text) > 1 && text[0] == '0':
		return 0, fmt.Errorf("%s is not a number of up to %d bits", quote(text), bits)
	}
	return n, nil
}

// widthError returns the error for IDs of the size that the other method
// handles.
func widthError(size int) error {
	method := "Sequencer"
	if size == 16 {
		method = "Sequencer128"
	}
	return fmt.Errorf("the sequencer has IDs of %d bits: use the Client's method %s", 8*size, method)
}

// parseHex parses an ID of size bytes.
func parseHex(text string, size int) (n number, err error) {
	if len(text) != 2*size {
		if len(text) == 32 || len(text) == 16 {
			return n, widthError(len(text) / 2)
		}
		return n, fmt.Errorf("%s is not an ID of %d hexadecimal digits", quote(text), 2*size)
	}
	for i := range len(text) {
		c := text[i]
		var digit uint64
		switch {
		case c >= '0' && c <= '9':
			digit = uint64(c - '0')
		case c >= 'a' && c <= 'f':
			digit = uint64(c-'a') + 10
		default:
			return n, fmt.Errorf("%s is not an ID in hexadecimal digits", quote(text))
		}
		n.hi, n.lo = n.hi<<4|n.lo>>60, n.lo<<4|digit
	}
	return n, nil
}
