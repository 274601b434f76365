package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A Record describes the parts of an ID in JSON.
type Record struct {
	Layout Text
	TimeMS Text `json:"time_ms"`
	Node   Text
	Seq    Text
}

// A Text is the text of a value in JSON, or "" if it is null. A string
// stands for the number in it. Numbers keep their digits and never pass through
// a float64.
type Text string

// UnmarshalJSON implements json.Unmarshaler.
func (v *Text) UnmarshalJSON(b []byte) error {
	text := string(b) // the user of the value rejects what is not a number
	switch {
	case text == "null":
		return nil
	case *v != "":
		return errors.New("a key is given twice")
	case text == `""`:
		return errors.New("a value is empty")
	case b[0] == '"':
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*v = Text(text)
	return nil
}

// ParseRecord parses a JSON object with the keys layout, time_ms, node and seq.
// Unknown and repeated keys are errors.
func ParseRecord(line string) (r Record, err error) {
	switch text := strings.TrimSpace(line); {
	case line == "":
		return r, errors.New("the line is empty")
	case !strings.HasPrefix(text, "{"):
		return r, errors.New("expected a JSON object")
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&r); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return r, errors.New("the object is not complete")
	case err != nil:
		if text, unknown := strings.CutPrefix(err.Error(), "json: "); unknown {
			err = fmt.Errorf("%s: the keys are layout, time_ms, node and seq", text)
		}
		return r, err
	}
	if _, err := d.Token(); err != io.EOF {
		return r, fmt.Errorf("unexpected text after the object at offset %d", d.InputOffset())
	}
	return r, nil
}

// A Composer composes IDs of records, of any layouts. Keys that a record leaves
// out have the values here.
type Composer struct {
	Layout  firn.Layout
	Time    time.Time
	HasTime bool // otherwise every record needs time_ms
	Node    func(firn.Layout) (uint64, error)
	Seq     uint64

	last     firn.Layout // of lastText, that of the last record with a layout
	lastText Text
}

// Compose composes the ID of one record.
func (c *Composer) Compose(line string) (ID, error) {
	r, err := ParseRecord(line)
	if err != nil {
		return nil, err
	}
	l := c.Layout
	if r.Layout != "" {
		if r.Layout != c.lastText {
			if c.last, err = firn.ParseLayout(string(r.Layout)); err != nil {
				return nil, err
			}
			c.lastText = r.Layout
		}
		l = c.last
	}
	wrong := func(key string, v Text, err error) error {
		return fmt.Errorf("%s %s: %w", key, textfmt.Quote(string(v)), textfmt.Plain(err))
	}
	p := firn.Parts{Time: c.Time, Seq: c.Seq}
	switch {
	case r.TimeMS != "":
		if p.Time, err = textfmt.ParseMillis(string(r.TimeMS)); err != nil {
			return nil, wrong("time_ms", r.TimeMS, err)
		}
	case !c.HasTime:
		return nil, errors.New("time_ms is missing")
	}
	if r.Node != "" {
		if p.Node, err = l.ParseNode(string(r.Node)); err != nil {
			return nil, wrong("node", r.Node, err)
		}
	} else if p.Node, err = c.Node(l); err != nil {
		return nil, err
	}
	if r.Seq != "" {
		if p.Seq, err = textfmt.ParseNumber(string(r.Seq)); err != nil {
			return nil, wrong("seq", r.Seq, err)
		}
	}
	return Compose(l, p)
}
