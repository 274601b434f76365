package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
)

// ReadOnlyError returns the error for a layout whose IDs cannot be made.
func ReadOnlyError(l firn.Layout) error {
	return fmt.Errorf("IDs of layout %s can be read but not made", l)
}

// A Composer composes IDs of records, of any layouts. Keys that a record leaves
// out have the values here. It is not safe for concurrent use.
type Composer struct {
	Layout  firn.Layout
	Time    time.Time
	HasTime bool                              // otherwise every record needs time_ms
	Node    func(firn.Layout) (uint64, error) // nil means 0
	Seq     uint64

	last     firn.Layout // of lastText, that of the last record with a layout
	lastText string
}

// An ID is an ID as bytes, big-endian. Only IDs of 64 and 128 bits can be made.
type ID []byte

// An Appender is a firn.Format, or another way to write IDs.
type Appender interface {
	Append(b []byte, id firn.ID) []byte
	Append128(b []byte, id firn.ID128) []byte
}

// Append appends an ID of 64 or 128 bits in a format.
func (id ID) Append(b []byte, f Appender) []byte {
	if len(id) == 16 {
		return f.Append128(b, firn.ID128(id))
	}
	return f.Append(b, firn.ID(binary.BigEndian.Uint64(id)))
}

// JSON returns the ID for JSON.
func (id ID) JSON() any {
	return struct {
		Dec string `json:"dec"`
		Hex string `json:"hex"`
	}{string(id.Append(nil, firn.Decimal)), hex.EncodeToString(id)}
}

// Compose composes an ID of 64 or 128 bits.
func Compose(l firn.Layout, p firn.Parts) (ID, error) {
	switch {
	case l.ReadOnly():
		return nil, ReadOnlyError(l)
	case l.Bits() == 128:
		id, err := l.Compose128(p)
		return id[:], err
	}
	id, err := l.Compose(p)
	return firn.Raw.Append(nil, id), err
}

// ErrEmptyLine is the error for an empty line.
var ErrEmptyLine = errors.New("the line is empty")

// Compose composes the ID of one record, as ParseRecord reads it.
func (c *Composer) Compose(line string) (ID, error) {
	if line == "" {
		return nil, ErrEmptyLine
	}
	r, err := ParseRecord(line)
	if err != nil {
		return nil, err
	}
	l := c.Layout
	if r.Layout != "" {
		if r.Layout != c.lastText {
			if c.last, err = firn.ParseLayout(r.Layout); err != nil {
				return nil, err
			}
			c.lastText = r.Layout
		}
		l = c.last
	}
	p := firn.Parts{Time: c.Time, Seq: c.Seq}
	switch {
	case r.TimeMS != "":
		if p.Time, err = ParseMillis(r.TimeMS); err != nil {
			return nil, fmt.Errorf("time_ms %s: %w", Quote(r.TimeMS), err)
		}
	case !c.HasTime:
		return nil, errors.New("time_ms is missing")
	}
	switch {
	case r.Node != "":
		if p.Node, err = l.ParseNode(r.Node); err != nil {
			return nil, fmt.Errorf("node %s: %w", Quote(r.Node), Plain(err))
		}
	case c.Node != nil:
		if p.Node, err = c.Node(l); err != nil {
			return nil, err
		}
	}
	if r.Seq != "" {
		if p.Seq, err = ParseNumber(r.Seq); err != nil {
			return nil, fmt.Errorf("seq %s: %w", Quote(r.Seq), err)
		}
	}
	return Compose(l, p)
}
