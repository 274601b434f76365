package service

import (
	"cmp"
	"context"
	"errors"
	"time"

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

// A LimitedChange changes a sequencer within the limit of a request. pending
// reports that other processes have yet to follow: the store has the state that
// keeps windows from growing, and repeating the call shows whether it is done.
type LimitedChange func(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool, err error)

// Detach is a LimitedChange that detaches a sequencer.
func Detach(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool, err error) {
	return empty(ctx, a, name, limit, a.Detach, grant.Detaching, grant.Detached)
}

// Destroy is Detach for ever.
func Destroy(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool, err error) {
	return empty(ctx, a, name, limit, a.Destroy, grant.Destroying, grant.Destroyed)
}

func empty(ctx context.Context, a *StoreAdmin, name string, limit time.Duration,
	do func(context.Context, string) (grant.Info, error), through, last grant.State,
) (info grant.Info, pending bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	info, err = do(limited, name)
	if err == nil || errors.Is(err, grant.ErrNotFound) || limited.Err() == nil || ctx.Err() != nil {
		return info, false, err
	}
	later, cancel := context.WithTimeout(ctx, ReadyLimit)
	defer cancel()
	now, lookup := a.Lookup(later, name)
	switch {
	case lookup != nil:
		err = lookup
	case now.State == through || now.State == last:
		return now, true, nil
	}
	// Nothing was started: the caller would wait in vain.
	return info, false, AdminProblem(name, err, limit, true)
}
