package service

import (
	"context"
	"strings"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/veil"
)

// PrepareInspect makes o fit an ID of a sequencer that a client may see, or
// take IDs of: it sets the layout, the prefix of typed text, and the key of
// veiled text. Without a name, only veiled text is a Problem. It opens no
// sequencer.
func (f *Front) PrepareInspect(ctx context.Context, c *auth.Credentials, name, text string, o *inspect.Options,
) *Problem {
	if name != "" && CheckName(name) == nil && f.Allow(c, auth.See, name) != nil {
		if p := f.Allow(c, auth.Take, name); p != nil {
			return p
		}
	}
	_, veiled := veil.KeyNumber(text)
	veiled = veiled && o.From.IsAuto() || o.From.IsVeiled()
	switch {
	case veiled && f.VeilKeys.IsZero():
		return Problemf(BadParameter, "%v", errNoVeilKeys)
	case name == "" && veiled:
		return Problemf(BadParameter, "%s is a veiled ID: %s", textfmt.Quote(text), f.NameSequencer)
	case name == "":
		return nil
	case !o.Layout.IsZero():
		return Problemf(BadParameter, "name the sequencer or the layout of the ID, not both")
	}
	q, problem := f.existing(ctx, name)
	if problem != nil {
		return problem
	}
	o.Layout = q.Layout
	switch {
	case veiled:
		v, err := form.NewVeil(f.VeilKeys, name, q.Layout)
		if err != nil {
			return Problemf(BadParameter, "%s", textfmt.Message(err))
		}
		o.From = form.VeiledBy(v)
	case o.From.IsTyped() || o.From.IsAuto() && strings.Contains(text, "_"):
		o.From = form.TypedAs(q.Prefix)
	}
	return nil
}

// existing returns the layout and the prefix of a sequencer.
func (f *Front) existing(ctx context.Context, name string) (*Sequencer, *Problem) {
	if p := problemOfName(name); p != nil {
		return nil, p
	}
	if q := f.Backend.Opened(name); q != nil {
		return q, nil
	}
	a := f.Backend.Admin()
	if a == nil {
		return nil, Problemf(NoSequencer, "sequencer %s is not in use", name)
	}
	ctx, cancel := f.Limited(ctx)
	defer cancel()
	info, err := a.Lookup(ctx, name)
	if err != nil {
		return nil, AdminProblem(name, err, f.RequestTimeout, ctx.Err() != nil)
	}
	return &Sequencer{Layout: info.Config.Layout, Prefix: info.Config.Prefix}, nil
}
