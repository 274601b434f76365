package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/config"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A Creation is a sequencer to create, as clients describe it. A field that is
// nil has its default.
type Creation struct {
	Layout   *string `json:"layout"`
	MaxAhead *string `json:"max_ahead"`
	Window   *string `json:"window"`
	Prefix   *string `json:"prefix"`
	LowBits  *string `json:"low_bits"`
}

// A FieldError says what is wrong with a field of a Creation.
type FieldError struct{ Field, Text string }

// Config returns the configuration of the sequencer, or all that is wrong with
// it.
func (n *Creation) Config(a *StoreAdmin) (c grant.Config, wrong []FieldError) {
	fail := func(field string, err error) { wrong = append(wrong, FieldError{field, textfmt.Message(err)}) }
	duration := func(field string, text *string) *time.Duration {
		if text == nil {
			return nil
		}
		d, err := time.ParseDuration(*text)
		if err != nil || d < 0 {
			fail(field, fmt.Errorf("%.40q is not a duration such as 200ms or 60s", *text))
		}
		return &d
	}
	layout, low := firn.Default(), 0
	var err error
	if n.Layout != nil {
		if layout, err = firn.ParseLayout(*n.Layout); err == nil && layout.ReadOnly() {
			err = fmt.Errorf("layout %s is only for reading IDs", layout)
		}
		if err != nil {
			fail("layout", err)
		}
	}
	ahead, window := duration("max_ahead", n.MaxAhead), duration("window", n.Window)
	if n.LowBits != nil {
		if low, err = config.ParseLowBits(*n.LowBits); err != nil {
			fail("low_bits", err)
		}
	}
	if wrong != nil {
		return c, wrong
	}
	if c, err = a.Configure(layout, ahead, window); err != nil {
		fail("window", err)
		return c, wrong
	}
	if n.Prefix != nil {
		c.Prefix = *n.Prefix
	}
	if err = c.Check(); err != nil {
		fail("prefix", err)
		return c, wrong
	}
	c.LowBits = low
	if err = c.Check(); err != nil {
		fail("low_bits", err)
	}
	return c, wrong
}

// Detach detaches a sequencer within the limit of a request. pending reports
// that members have yet to follow: the store has the state that keeps windows
// from growing, and repeating the call shows whether it is done.
func Detach(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool, err error) {
	return empty(ctx, a, name, limit, a.Detach, grant.Detaching, grant.Detached)
}

// Destroy is Detach for ever.
func Destroy(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool, err error) {
	return empty(ctx, a, name, limit, a.Destroy, grant.Destroying, grant.Destroyed)
}

func empty(ctx context.Context, a *StoreAdmin, name string, limit time.Duration, do func(context.Context, string) (grant.Info, error), through, last grant.State) (info grant.Info, pending bool, err error) {
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
	return info, false, &lateError{err}
}
