package console

import (
	"net/http"
	"strings"

	"github.com/firnid/firn/server/internal/access/auth"
)

// A visitor is the user of a page, and what they may do.
type visitor struct {
	Known    bool
	SignedIn bool // in by a session, so that they can sign out
	p        *auth.Principal
}

// Name returns the visitor's name in the token file; empty without
// authentication.
func (v visitor) Name() string {
	if v.p == nil {
		return ""
	}
	return v.p.Name
}

// Role returns the visitor's role. It is not called without authentication.
func (v visitor) Role() auth.Role { return v.p.Role }

// may reports whether the visitor may do something to a sequencer.
func (v visitor) may(do auth.Action, name string) bool {
	return v.Known && (v.p == nil || v.p.May(do, name))
}

// mayAny reports whether the visitor may do something to some sequencer.
func (v visitor) mayAny(do auth.Action) bool { return v.Known && (v.p == nil || v.p.Role.May(do)) }

// MayRead reports whether the visitor may see a sequencer, or the fleet if name
// is empty.
func (v visitor) MayRead(name string) bool { return v.may(auth.See, name) }

// visitor identifies the sender of a request by session or certificate.
func (k *Console) visitor(r *http.Request) visitor {
	if k.config.Guard == nil {
		return visitor{Known: true}
	}
	now, state := k.config.Now(), r.TLS
	if p, ok := k.sessions.Principal(r, k.config.Guard.Set(), state != nil, now); ok {
		return visitor{Known: true, SignedIn: true, p: p}
	}
	// Tokens in headers are for the API. As there, a request with a token is not
	// identified by its certificate.
	creds := auth.FromHeader(r.Header["Authorization"], state)
	if creds.Given {
		return visitor{}
	}
	p, ok := k.config.Guard.Who(creds, now)
	return visitor{Known: ok, p: p}
}

// signInForm shows the form for a token.
func (k *Console) signInForm(v *visit) {
	next := local(v.r.URL.Query().Get("next"))
	if v.who.Known {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return
	}
	v.show(http.StatusOK, page{Title: "Sign in"}, signInForm(next, ""))
}

// signIn begins a session with a token.
func (k *Console) signIn(v *visit) {
	next := local(v.r.PostForm.Get("next"))
	if k.config.Guard == nil {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return
	}
	p, ok := k.config.Guard.Set().Token(strings.TrimSpace(v.r.PostForm.Get("token")), v.now)
	if !ok {
		v.show(http.StatusUnauthorized, page{Title: "Sign in"},
			signInForm(next, "Unknown token. It may be mistyped, or it has expired."))
		return
	}
	http.SetCookie(v.w, k.sessions.Cookie(p, v.r.TLS != nil, v.now))
	http.Redirect(v.w, v.r, next, http.StatusSeeOther)
}

// signOut ends the session.
func (k *Console) signOut(v *visit) {
	if k.config.Guard != nil {
		http.SetCookie(v.w, k.sessions.End(v.r, v.r.TLS != nil))
	}
	http.Redirect(v.w, v.r, "/sign-in", http.StatusSeeOther)
}

// local returns next if it is an address of this server, otherwise the first
// page.
func local(next string) string {
	if len(next) < 2 || next[0] != '/' || next[1] == '/' || next[1] == '\\' || strings.ContainsAny(next, "\r\n\t\\") {
		return "/"
	}
	return next
}
