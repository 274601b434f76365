package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
)

// makeID makes an ID of a sequencer and explains it.
func (k *Console) makeID(v *visit) {
	name := strings.TrimSpace(v.r.PostForm.Get("name"))
	if err := service.CheckName(name); err != nil {
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(err)+".")
		return
	}
	if !v.who.may(auth.Take, name) {
		v.forbidden("You may not take IDs of " + name + ".")
		return
	}
	ctx, cancel := k.limited(v.r)
	defer cancel()
	id, layout, err := k.takeID(ctx, name, v)
	if err != nil {
		v.failWith(err, ctx.Err() != nil)
		return
	}
	k.snapshots.forget() // the node ID may be new
	target := inspectAddress([]string{id}, url.Values{"layout": {layout.String()}, "of": {name}})
	http.Redirect(v.w, v.r, target+"&made=1", http.StatusSeeOther)
}

// limited returns a request's context with Config.Limit.
func (k *Console) limited(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), k.config.Limit)
}

// takeID makes an ID of a sequencer, typed if it has a prefix, or else in its
// layout's format.
func (k *Console) takeID(ctx context.Context, name string, v *visit) (string, *firn.Layout, error) {
	var may auth.Authorizer
	creds := &auth.Credentials{Address: v.r.RemoteAddr}
	if v.who.p != nil {
		may, creds = v.who.p, v.who.p.Credentials(v.r.RemoteAddr)
	}
	take := service.Taker{Backend: k.config.Backend, Auth: may, Limit: k.config.Limit}
	var f form.Form
	b, err := take.Take(ctx, strings.Clone(name), creds, 1, service.Terms{Fit: func(s *service.Sequencer) error {
		if f = form.Of(s.Layout.Format()); s.Prefix != "" {
			f = form.TypedAs(s.Prefix)
		}
		return nil
	}})
	if err != nil {
		return "", nil, err
	}
	return string(b.At(0).Append(nil, &f)), b.Layout(), nil
}
