package client

import (
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

// Anything other than exactly the requested number of IDs, each of them once, is
// an error. But members that this version does not know are allowed, because
// servers may be newer than their clients.

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
	var answer struct {
		Runs []struct {
			First, Step string
			Count       json.Number
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	all := collector{count: count}
	for _, r := range answer.Runs {
		if err := all.addText(r.First, r.Step, r.Count.String(), idSize[I]()); err != nil {
			return nil, err
		}
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
