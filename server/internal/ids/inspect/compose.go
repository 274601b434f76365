package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
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

	layouts map[string]firn.Layout // already parsed
}

// maxLayouts bounds the memory for a stream with ever new layouts.
const maxLayouts = 1000

// An ID holds 64 or 128 bits.
type ID struct {
	wide  bool
	id    firn.ID
	id128 firn.ID128
}

// ID64 returns an ID of 64 bits.
func ID64(id firn.ID) ID { return ID{id: id} }

// IDOf returns the ID in 8 or 16 bytes.
func IDOf(b []byte) ID {
	if len(b) == 16 {
		return ID{wide: true, id128: firn.ID128(b)}
	}
	return ID{id: firn.ID(binary.BigEndian.Uint64(b))}
}

// Bits returns the size of the ID.
func (n ID) Bits() int {
	if n.wide {
		return 128
	}
	return 64
}

// An Appender is a firn.Format, or another way to write IDs.
type Appender interface {
	Append(b []byte, id firn.ID) []byte
	Append128(b []byte, id firn.ID128) []byte
}

// Append appends the ID in a format.
func (n ID) Append(b []byte, f Appender) []byte {
	if n.wide {
		return f.Append128(b, n.id128)
	}
	return f.Append(b, n.id)
}

// AppendJSON appends the ID as a JSON object with the keys dec and hex.
func (n ID) AppendJSON(b []byte) []byte {
	b = n.Append(append(b, `{"dec":"`...), firn.Decimal)
	b = n.Append(append(b, `","hex":"`...), firn.Hex)
	return append(b, `"}`...)
}

// Compose composes an ID of either size.
func Compose(l firn.Layout, p firn.Parts) (n ID, err error) {
	switch {
	case l.ReadOnly():
		return n, ReadOnlyError(l)
	case l.Bits() == 128:
		n.wide = true
		n.id128, err = l.Compose128(p)
	default:
		n.id, err = l.Compose(p)
	}
	return n, err
}

// ErrEmptyLine is the error for an empty line.
var ErrEmptyLine = errors.New("the line is empty")

// Compose composes the ID of one record, as ParseRecord reads it.
func (c *Composer) Compose(line string) (ID, error) {
	if line == "" {
		return ID{}, ErrEmptyLine
	}
	r, err := ParseRecord(line)
	if err != nil {
		return ID{}, err
	}
	l := c.Layout
	if r.Layout != "" {
		if l, err = c.parsed(r.Layout); err != nil {
			return ID{}, err
		}
	}
	p := firn.Parts{Time: c.Time, Seq: c.Seq}
	switch {
	case r.TimeMS != "":
		if p.Time, err = ParseMillis(r.TimeMS); err != nil {
			return ID{}, fmt.Errorf("time_ms %s: %w", Quote(r.TimeMS), err)
		}
	case !c.HasTime:
		return ID{}, errors.New("time_ms is missing")
	}
	switch {
	case r.Node != "":
		if p.Node, err = l.ParseNode(r.Node); err != nil {
			return ID{}, fmt.Errorf("node %s: %w", Quote(r.Node), Plain(err))
		}
	case c.Node != nil:
		if p.Node, err = c.Node(l); err != nil {
			return ID{}, err
		}
	}
	if r.Seq != "" {
		if p.Seq, err = ParseNumber(r.Seq); err != nil {
			return ID{}, fmt.Errorf("seq %s: %w", Quote(r.Seq), err)
		}
	}
	return Compose(l, p)
}

// parsed is ParseLayout with a cache.
func (c *Composer) parsed(text string) (firn.Layout, error) {
	if l, ok := c.layouts[text]; ok {
		return l, nil
	}
	l, err := firn.ParseLayout(text)
	if err != nil {
		return l, err
	}
	if len(c.layouts) >= maxLayouts {
		clear(c.layouts)
	}
	if c.layouts == nil {
		c.layouts = make(map[string]firn.Layout)
	}
	c.layouts[strings.Clone(text)] = l // a part of text would keep its whole chunk
	return l, nil
}
