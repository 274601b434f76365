package service

import (
	"cmp"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/config"
)

// A Creation is a sequencer to create, as clients describe it. A field that is
// nil means its default; an empty prefix means none.
type Creation struct {
	Layout   *string `json:"layout"`
	MaxAhead *string `json:"max_ahead"`
	Window   *string `json:"window"`
	Prefix   *string `json:"prefix"`
}

// A FieldError says what is wrong with a field of a Creation.
type FieldError struct{ Field, Text string }

// Config returns the configuration of the sequencer, or all that is wrong with
// it.
func (n *Creation) Config(a *StoreAdmin) (c grant.Config, wrong []FieldError) {
	fail := func(field string, err error) { wrong = append(wrong, FieldError{field, textfmt.Message(err)}) }
	var t config.Template
	for _, f := range []struct {
		field, key string
		text       *string
	}{
		{"layout", "layout", n.Layout}, {"max_ahead", "max-ahead", n.MaxAhead}, {"window", "window", n.Window},
		{"prefix", "prefix", n.Prefix},
	} {
		if f.text == nil || f.field == "prefix" && *f.text == "" {
			continue
		}
		if err := t.Set(f.key, *f.text); err != nil {
			fail(f.field, err)
		}
	}
	if wrong != nil {
		return c, wrong
	}
	c = a.Configure(cmp.Or(t.Layout, firn.Default()), t.MaxAhead)
	c.Window, c.Prefix = cmp.Or(t.Window, c.Window), t.Prefix
	if err := c.Check(); err != nil {
		fail("window", err)
	}
	return c, wrong
}
