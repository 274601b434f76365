package client

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/firnid/firn"
)

// Anything other than exactly the requested number of IDs, each of them once,
// is an error. But members that this version does not know are allowed, because
// servers may be newer than their clients.

// idSize returns the size of an ID in bytes.
func idSize[I firn.AnyID]() int {
	var id I
	if _, ok := any(id).(firn.ID); ok {
		return 8
	}
	return 16
}

// numberOf returns the number of an ID of either width.
func numberOf[I firn.AnyID](id I) firn.ID128 {
	switch id := any(id).(type) {
	case firn.ID:
		return firn.ID128FromUint64s(0, uint64(id))
	case firn.ID128:
		return id
	}
	return firn.ID128{}
}

// lastOf returns the number of the last ID of a run of a batch.
func lastOf[I firn.AnyID](r firn.RunOf[I]) firn.ID128 {
	hi, lo := numberOf(r.First).Uint64s()
	over, by := bits.Mul64(r.Step, uint64(r.Count)-1)
	lo, carry := bits.Add64(lo, by, 0)
	return firn.ID128FromUint64s(hi+over+carry, lo)
}

// batchOf returns the batch of runs, or an error unless it has count IDs, each
// of them once. In most layouts runs ascend. In a layout whose time is not on
// top, they come in any order and may be interleaved.
func batchOf[I firn.AnyID](runs []firn.RunOf[I], count int) (b firn.BatchOf[I], err error) {
	if b, err = firn.BatchFromRuns(runs...); err != nil {
		return b, err
	}
	if b.Len() != count {
		return b, fmt.Errorf("it has %d IDs, not the %d requested", b.Len(), count)
	}
	type span struct{ first, last firn.ID128 }
	spans := make([]span, len(runs))
	for i, r := range runs {
		spans[i] = span{numberOf(r.First), lastOf(r)}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.first.Compare(b.first) })
	apart := true
	for i := 1; i < len(spans); i++ {
		apart = apart && spans[i-1].last.Compare(spans[i].first) < 0
	}
	if apart {
		return b, nil
	}
	ids := slices.Collect(b.All())
	slices.SortFunc(ids, func(a, b I) int { return numberOf(a).Compare(numberOf(b)) })
	if len(slices.Compact(ids)) < count {
		return b, errors.New("it contains an ID twice")
	}
	return b, nil
}

// maxAnswerSize returns the maximum size of an answer with runs of n IDs in
// total: the longest run has 97 bytes, and the server adds a few more around
// all of them.
func maxAnswerSize(n int) int { return 1024 + 128*n }

// parseRuns parses {"runs":[{"first":"…","step":"…","count":…}]}. IDs are
// hexadecimal with all their digits.
func parseRuns[I firn.AnyID](data []byte) ([]firn.RunOf[I], error) {
	var answer struct {
		Runs []struct {
			First string
			Step  uint64 `json:",string"`
			Count int
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	runs := make([]firn.RunOf[I], len(answer.Runs))
	for i, r := range answer.Runs {
		first, err := parseHex[I](r.First)
		if err != nil {
			return nil, err
		}
		runs[i] = firn.RunOf[I]{First: first, Step: r.Step, Count: r.Count}
	}
	return runs, nil
}

// parsePacked parses count IDs, big-endian, with nothing between them.
func parsePacked[I firn.AnyID](data []byte, count int) ([]firn.RunOf[I], error) {
	size := idSize[I]()
	switch other := 24 - size; len(data) {
	case count * size:
	case count * other:
		return nil, widthError(other)
	default:
		return nil, fmt.Errorf("it has %d bytes, not the %d of %d IDs of %d bits", len(data), count*size, count, 8*size)
	}
	runs := make([]firn.RunOf[I], 0, count)
	for raw := range slices.Chunk(data, size) {
		run := firn.RunOf[I]{Step: 1, Count: 1}
		switch id := any(&run.First).(type) {
		case *firn.ID:
			*id = firn.ID(binary.BigEndian.Uint64(raw))
		case *firn.ID128:
			*id = firn.ID128(raw)
		}
		runs = append(runs, run)
	}
	return runs, nil
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

// parseHex parses an ID with all its hexadecimal digits.
func parseHex[I firn.AnyID](text string) (id I, err error) {
	size := idSize[I]()
	switch other := 24 - size; len(text) {
	case 2 * size:
	case 2 * other:
		return id, widthError(other)
	default:
		return id, fmt.Errorf("%s is not an ID of %d hexadecimal digits", quote(text), 2*size)
	}
	switch id := any(&id).(type) {
	case *firn.ID:
		*id, err = firn.Hex.Parse(text)
	case *firn.ID128:
		*id, err = firn.Hex.Parse128(text)
	}
	return id, err
}
