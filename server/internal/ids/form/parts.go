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

// PartsJSON is the parts of an ID in JSON: input of firn compose.
type PartsJSON struct {
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

// ParseParts parses a JSON object with the keys layout, time_ms, node and seq.
// Unknown and repeated keys are errors.
func ParseParts(line string) (p PartsJSON, err error) {
	switch text := strings.TrimSpace(line); {
	case line == "":
		return p, errors.New("the line is empty")
	case !strings.HasPrefix(text, "{"):
		return p, errors.New("expected a JSON object")
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&p); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return p, errors.New("the object is not complete")
	case err != nil:
		if text, unknown := strings.CutPrefix(err.Error(), "json: "); unknown {
			err = fmt.Errorf("%s: the keys are layout, time_ms, node and seq", text)
		}
		return p, err
	}
	if _, err := d.Token(); err != io.EOF {
		return p, fmt.Errorf("unexpected text after the object at offset %d", d.InputOffset())
	}
	return p, nil
}

// A Composer composes IDs from their parts, in any layouts. Keys that are left
// out have the values here.
type Composer struct {
	Layout  firn.Layout
	Time    time.Time
	HasTime bool // otherwise every line needs time_ms
	Node    func(firn.Layout) (uint64, error)
	Seq     uint64

	last     firn.Layout // of lastText, the last layout that a line named
	lastText Text
}

// Compose composes an ID from a line of JSON.
func (c *Composer) Compose(line string) (ID, error) {
	r, err := ParseParts(line)
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
