package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/service"
)

// makeID makes an ID of a sequencer, typed if it has a prefix, and explains it.
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
	front, creds := k.frontFor(v)
	q := service.Request{Count: 1}
	q.Fit = func(s *service.Sequencer) *service.Problem {
		if s.Prefix != "" {
			q.Resolved = form.TypedAs(s.Prefix)
		}
		return nil
	}
	var b service.Batch
	if p := front.Take(v.r.Context(), creds, name, &q, &b); p != nil {
		v.failWith(p, false)
		return
	}
	k.snapshots.forget() // the node ID may be new
	target := inspectAddress([]string{string(b.At(0).Append(nil, &q.Resolved))},
		url.Values{"layout": {b.Layout().String()}, "of": {name}})
	http.Redirect(v.w, v.r, target+"&made=1", http.StatusSeeOther)
}

// frontFor returns the Front for a visitor, and the visitor's credentials.
func (k *Console) frontFor(v *visit) (*service.Front, *auth.Credentials) {
	f := *k.front
	f.Auth = nil
	if v.who.p == nil { // without a Guard, because others see no page
		return &f, &auth.Credentials{Address: v.r.RemoteAddr}
	}
	f.Auth = v.who.p
	return &f, v.who.p.Credentials(v.r.RemoteAddr)
}
