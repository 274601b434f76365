package console

import (
	"net/http"
	"strings"

	"github.com/firnid/firn/server/auth"
)

// A visitor is whoever looks at a page, and what they may do.
type visitor struct {
	Known  bool
	Signed bool // by a session, which can be ended
	p      *auth.Principal
}

// Name is what a token's file calls them; empty where nobody has to be known.
func (v visitor) Name() string {
	if v.p == nil {
		return ""
	}
	return v.p.Name
}

// Role is what they may do, in a word.
func (v visitor) Role() string {
	if v.p == nil {
		return ""
	}
	return string(v.p.Role)
}

// MayRead reports whether they see the fleet, or a sequencer of it.
func (v visitor) MayRead(name string) bool { return v.Known && (v.p == nil || v.p.May(auth.See, name)) }

// SeesAll reports whether they see what is about all sequencers.
func (v visitor) SeesAll() bool { return v.Known && (v.p == nil || v.p.May(auth.SeeAll, "")) }

// MayMake reports whether they may take IDs of a sequencer.
func (v visitor) MayMake(name string) bool {
	return v.Known && (v.p == nil || v.p.May(auth.Take, name))
}

// MayAdmin reports whether they may change a sequencer.
func (v visitor) MayAdmin(name string) bool {
	return v.Known && (v.p == nil || v.p.May(auth.Change, name))
}

// Admin and Maker report whether they may do so with any sequencer at all.
func (v visitor) Admin() bool { return v.Known && (v.p == nil || v.p.Role == auth.Admin) }

// Maker is as Admin says.
func (v visitor) Maker() bool { return v.Known && (v.p == nil || v.p.Role != auth.Read) }

// visitor finds out who sends a request: by the session, or the certificate.
func (k *Console) visitor(r *http.Request) visitor {
	if k.c.Guard == nil {
		return visitor{Known: true}
	}
	now, state := k.c.Now(), k.c.TLS(r)
	if p, ok := k.sessions.Principal(r, k.c.Guard.Set(), state != nil, now); ok {
		return visitor{Known: true, Signed: true, p: p}
	}
	// Tokens in headers are for the API. A request that shows one is not let in by
	// its certificate here either.
	creds := auth.FromHeader(r.Header["Authorization"], state)
	if creds.Given {
		return visitor{}
	}
	p, ok := k.c.Guard.Who(creds, now)
	return visitor{Known: ok, p: p}
}

// signInForm asks for a token.
func (k *Console) signInForm(v *visit) {
	next := local(v.r.URL.Query().Get("next"))
	if v.who.Known {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return
	}
	v.show(http.StatusOK, "sign-in", page{Title: "Sign in", Body: signIn{Next: next}})
}

type signIn struct{ Next, Fault string }

// signIn begins a session with a token.
func (k *Console) signIn(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusBadRequest, "The form cannot be read", "It may be too large.")
		return
	}
	next := local(v.r.PostForm.Get("next"))
	if k.c.Guard == nil {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return
	}
	p, ok := k.c.Guard.Set().Token(strings.TrimSpace(v.r.PostForm.Get("token")), v.now)
	if !ok {
		v.show(http.StatusUnauthorized, "sign-in", page{Title: "Sign in", Body: signIn{next, "This token is not known here. It may be mistyped, or have expired."}})
		return
	}
	http.SetCookie(v.w, k.sessions.Cookie(p, k.c.TLS(v.r) != nil, v.now))
	http.Redirect(v.w, v.r, next, http.StatusSeeOther)
}

// signOut ends the session.
func (k *Console) signOut(v *visit) {
	if k.c.Guard != nil {
		http.SetCookie(v.w, k.sessions.End(v.r, k.c.Guard.Set(), k.c.TLS(v.r) != nil, v.now))
	}
	http.Redirect(v.w, v.r, "/sign-in", http.StatusSeeOther)
}

// local is an address of this server, or its first page.
func local(next string) string {
	if len(next) < 2 || next[0] != '/' || next[1] == '/' || next[1] == '\\' || strings.ContainsAny(next, "\r\n\t\\") {
		return "/"
	}
	return next
}
