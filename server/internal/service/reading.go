package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/veil"
)

// A Reader reads IDs of sequencers, also veiled ones. It opens no sequencer.
type Reader struct {
	Backend Backend
	Veil    veil.Keys     // of veiled IDs; nil if the server has none
	Limit   time.Duration // of a request
	How     string        // to name the sequencer of a veiled ID
}

// Options makes o fit an ID of a sequencer: it sets the layout, the prefix of
// typed text, and the key of veiled text. The caller must be allowed to see the
// sequencer or to take its IDs. Without a name, only veiled text is a Problem.
func (r Reader) Options(ctx context.Context, name, text string, o *inspect.Options) *Problem {
	_, veiled := veil.KeyNumber(text)
	veiled = veiled && o.From.IsAuto() || o.From.IsVeiled()
	if veiled && len(r.Veil) == 0 {
		return &Problem{Kind: BadParameter, Detail: errNoVeilKeys.Error()}
	}
	if name == "" {
		if veiled {
			return &Problem{Kind: BadParameter, Detail: textfmt.Quote(text) + " is a veiled ID: " + r.How}
		}
		return nil
	}
	if !o.Layout.IsZero() {
		return &Problem{Kind: BadParameter, Detail: "name the sequencer or the layout of the ID, not both"}
	}
	q, problem := r.find(ctx, name)
	if problem != nil {
		return problem
	}
	o.Layout = q.Layout
	switch {
	case veiled:
		v, err := form.NewVeil(r.Veil, name, q.Layout)
		if err != nil {
			return &Problem{Kind: BadParameter, Detail: textfmt.Message(err)}
		}
		o.From = form.VeiledBy(v)
	case o.From.IsTyped() || o.From.IsAuto() && strings.Contains(text, "_"):
		o.From = form.TypedAs(q.Prefix)
	}
	return nil
}

// find returns the layout and the prefix of a sequencer.
func (r Reader) find(ctx context.Context, name string) (*Sequencer, *Problem) {
	if err := CheckName(name); err != nil {
		return nil, &Problem{Kind: BadName, Detail: err.Error()}
	}
	if q := r.Backend.Opened(name); q != nil {
		return q, nil
	}
	a := r.Backend.Admin()
	if a == nil {
		return nil, &Problem{Kind: NoSequencer, Detail: fmt.Sprintf("sequencer %s is not in use", name)}
	}
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	info, err := a.Lookup(ctx, name)
	if err != nil {
		f := AdminProblem(name, err, r.Limit, ctx.Err() != nil)
		return nil, &f
	}
	return &Sequencer{Layout: info.Config.Layout, Prefix: info.Config.Prefix}, nil
}
