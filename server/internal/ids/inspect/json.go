package inspect

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/firnid/firn"
)

// maxExact is the largest integer up to which every JSON parser is exact.
// Larger numbers are written as strings.
const maxExact = 1 << 53

// Number returns v as a value for JSON: a number up to 2^53, otherwise a string
// of digits.
func Number(v uint64) any {
	if v <= maxExact {
		return v
	}
	return strconv.FormatUint(v, 10)
}

// Millis returns t in Unix milliseconds as a value for JSON, like Number, also
// if it exceeds int64. It rounds down.
func Millis(t time.Time) any {
	if t.Unix() <= maxExact/1000 && t.UnixMilli() <= maxExact {
		return t.UnixMilli()
	}
	return fmt.Sprintf("%d%03d", t.Unix(), t.Nanosecond()/1e6)
}

// PartsJSON is the parts of an ID in JSON. Integers above 2^53 are strings.
// Time, TimeMS, Node and Seq are null for a UUID that holds none.
type PartsJSON struct {
	Layout    string         `json:"layout"`
	Time      any            `json:"time"` // RFC 3339 in UTC, null after the year 9999
	TimeMS    any            `json:"time_ms"`
	Node      any            `json:"node"`
	NodeParts map[string]any `json:"node_parts,omitempty"` // the named pieces of the node
	Seq       any            `json:"seq"`
	Dec       string         `json:"dec"`
	Hex       string         `json:"hex"` // two digits for each byte
}

// ReadingJSON is a reading in JSON.
type ReadingJSON struct {
	PartsJSON
	From       string        `json:"from"`  // the form of the text
	Score      float64       `json:"score"` // 0 to 1, the share among all readings, and none of them
	For        []string      `json:"for"`   // reasons, in words
	Against    []string      `json:"against"`
	Others     []ReadingJSON `json:"others,omitzero"` // of the likeliest reading
	Likelihood string        `json:"likelihood"`      // likely, possible or unlikely
	Known      *bool         `json:"known,omitempty"` // false if no known layout is likelier than this one
	Note       string        `json:"note,omitempty"`  // what the text may be instead of an ID
}

// JSON returns the likeliest reading, with the others.
func (r *Result) JSON() ReadingJSON {
	best := r.Readings[0].json()
	best.Others = []ReadingJSON{}
	for i := range r.Readings[1:] {
		best.Others = append(best.Others, r.Readings[1+i].json())
	}
	if known := r.Known(); !r.layoutGiven {
		best.Known = &known
		if !known {
			best.Note = r.Other
		}
	}
	return best
}

func (r *Reading) json() ReadingJSON {
	return ReadingJSON{
		PartsJSON: r.Parts(), From: r.Form.String(), Score: math.Round(r.Score*1e6) / 1e6,
		For: append([]string{}, r.For()...), Against: append([]string{}, r.Against()...), Likelihood: r.Likelihood().String(),
	}
}

// Parts returns what a known layout says about the ID.
func (r *Reading) Parts() PartsJSON {
	p := PartsJSON{Layout: r.Name, Dec: r.Dec(), Hex: r.Hex()}
	if !r.HasParts {
		return p
	}
	if y := r.Time.Year(); y >= 0 && y <= 9999 {
		p.Time = r.Stamp()
	}
	p.TimeMS, p.Node, p.Seq = Millis(r.Time), Number(r.Node), Number(r.Seq)
	for _, part := range r.NodeParts() {
		if p.NodeParts == nil {
			p.NodeParts = make(map[string]any)
		}
		p.NodeParts[part.Name] = Number(part.Value)
	}
	return p
}

// unitOf returns the length of a tick; a UUID without a layout has that of
// version 1.
func unitOf(l firn.Layout) time.Duration {
	if l.IsZero() {
		return uuidv6().Unit()
	}
	return l.Unit()
}

// Stamp returns the time of the reading as text; see the function Stamp.
func (r *Reading) Stamp() string { return Stamp(r.Time, unitOf(r.Layout)) }
