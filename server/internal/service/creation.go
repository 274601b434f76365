package service

import (
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
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

// A CreationError says what is wrong with the fields of a Creation; at least
// one is.
type CreationError struct{ Wrong []FieldError }

// A FieldError says what is wrong with a field.
type FieldError struct{ Field, Text string }

func (e *CreationError) Error() string {
	var all []string
	for _, w := range e.Wrong {
		all = append(all, w.Field+": "+w.Text)
	}
	return strings.Join(all, "; ")
}

// Config returns the configuration of the sequencer in the store of a, or a
// CreationError.
func (n *Creation) Config(a *StoreAdmin) (grant.Config, error) {
	var wrong []FieldError
	t := config.Template{Layout: firn.Default()}
	o := new(sequencer.Options)
	// Each field is checked with those above it, so that no other is blamed.
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
		err := t.Set(f.key, *f.text)
		if err == nil && wrong == nil {
			t.Apply(o)
			err = o.Config(a.store).Check()
		}
		if err != nil {
			wrong = append(wrong, FieldError{f.field, textfmt.Message(err)})
		}
	}
	if wrong != nil {
		return grant.Config{}, &CreationError{wrong}
	}
	t.Apply(o)
	return o.Config(a.store), nil
}
