package console

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/metrics"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// Config is the configuration of a Console. Only Front.Backend is required; the
// zero value of every other field has the meaning given at the field.
type Config struct {
	// Front is what pages need. Its Auth is not used: the Guard identifies the
	// visitor of a page, and the visitor's rights decide.
	Front service.Front

	// Figures returns the statistics of this server's sequencers; nil means
	// unknown.
	Figures func() []metrics.Sequencer

	// Self returns this server's ID as a member, or ""; nil means that it has
	// none.
	Self func() string

	// Guard identifies users, by session or certificate; nil allows everything.
	Guard *auth.Guard

	// Layout is the layout of sequencers that are created by using them; the
	// zero Layout means firn.Default.
	Layout firn.Layout

	Version string
	Now     func() time.Time // the clock; nil means the system's
	Every   time.Duration    // how often pages request themselves; 0 means 2 s
}

// A Console serves the pages. It is safe for concurrent use, must be made by
// New, and ends with Close.
type Console struct {
	config    Config
	front     *service.Front      // of config
	admin     *service.StoreAdmin // nil without a store
	sessions  *auth.Sessions
	origins   *http.CrossOriginProtection
	mux       *http.ServeMux
	snapshots *snapshots

	ctx     context.Context // ends with Close
	end     context.CancelFunc
	closing sync.Mutex // held to end ctx, and to add to wg
	wg      sync.WaitGroup
}

// sessionLife is how long a browser stays signed in.
const sessionLife = 12 * time.Hour

// New makes a Console. It panics if c.Front has no Backend.
func New(c Config) *Console {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Every = cmp.Or(c.Every, 2*time.Second)
	c.Layout = cmp.Or(c.Layout, firn.Default())
	if c.Figures == nil {
		c.Figures = func() []metrics.Sequencer { return nil }
	}
	if c.Self == nil {
		c.Self = func() string { return "" }
	}
	c.Front = c.Front.WithDefaults()
	c.Front.NameSequencer = "name its sequencer under Layout and encoding"
	k := &Console{
		config: c, admin: c.Front.Backend.Admin(), sessions: auth.NewSessions(sessionLife),
		origins: http.NewCrossOriginProtection(),
		mux:     http.NewServeMux(),
	}
	k.front = &k.config.Front
	k.snapshots = newSnapshots(k)
	k.ctx, k.end = context.WithCancel(context.Background())
	k.routes()
	return k
}

// Close ends the background work, and returns when all of it has ended. It may
// be called more than once.
func (k *Console) Close() {
	k.closing.Lock()
	k.end()
	k.closing.Unlock()
	k.wg.Wait()
}

// background runs f in a goroutine, unless the console is closed. f must return
// soon after k.ctx is done.
func (k *Console) background(f func()) bool {
	k.closing.Lock()
	defer k.closing.Unlock()
	if k.ctx.Err() != nil {
		return false
	}
	k.wg.Go(f)
	return true
}

// routes registers all paths. All but those registered with public need
// authentication.
func (k *Console) routes() {
	get := func(path string, f func(*visit)) { k.mux.HandleFunc("GET "+path, k.signedIn(f)) }
	post := func(path string, f func(*visit)) { k.mux.HandleFunc("POST "+path, k.signedIn(k.sameOrigin(f))) }

	get("/{$}", k.overview)
	get("/create", k.newSequencer)
	post("/create", k.createSequencer)
	get("/sequencers/{name}", k.sequencer)
	get("/sequencers/{name}/{action}", k.confirm)
	post("/sequencers/{name}/{action}", k.perform)
	get("/members", k.members)
	get("/inspect", k.inspect)
	get("/inspect/{ids}", k.inspect)
	k.mux.HandleFunc("POST /inspect", k.signedIn(k.inspectPosted))
	post("/make", k.makeID)
	post("/sign-out", k.signOut)

	k.mux.HandleFunc("GET /sign-in", k.public(k.signInForm))
	k.mux.HandleFunc("POST /sign-in", k.public(k.sameOrigin(k.signIn)))
	k.mux.HandleFunc("GET /console/{version}/{file}", asset)
	k.mux.HandleFunc(anyPath, k.signedIn(func(v *visit) {
		v.fail(http.StatusNotFound, "Page not found", "The address may be mistyped, or come from another version of Firn.")
	}))
}

// anyPath is the pattern of all paths without a page.
const anyPath = "/"

// Matches reports whether the console answers a request: on its own paths, and
// on any path if a browser asks for a page. The API's paths come first.
func (k *Console) Matches(r *http.Request) bool {
	_, pattern := k.mux.Handler(r)
	return wantsPage(r) || r.URL.Path != "/" && pattern != anyPath
}

// wantsPage reports whether a browser asks for a page.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// policy allows only what the server itself sends: no inline script or style,
// no eval, no frames, no forms to other sites.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP answers a request.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // addresses of pages contain IDs
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	k.mux.ServeHTTP(w, r)
}

// A visit is a request of a visitor.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	body    io.ReadCloser // all of it
	who     visitor
	now     time.Time
}

// The sizes of forms: some thousands of IDs, and what strangers may send, a
// token and an address.
const (
	maxBody   = 256 << 10
	maxSignIn = 8 << 10
)

// signedIn calls f for visitors who may see pages, and asks others to sign in.
func (k *Console) signedIn(f func(*visit)) http.HandlerFunc {
	return k.public(func(v *visit) {
		if v.who.Known {
			if k.config.Guard != nil || v.r.ContentLength == 0 { // otherwise the form may never arrive
				listen.MarkKnown(listen.ConnIn(v.r.Context()))
			}
			v.r.Body = http.MaxBytesReader(v.w, v.body, maxBody)
			f(v)
			return
		}
		if auth.FromHeader(v.r.Header["Authorization"], v.r.TLS).OfCertificate() {
			v.w.Header().Set("Connection", "close")
		}
		if comesFromElsewhere(v.r) {
			// For a link from another site, browsers hold SameSite=Strict
			// cookies back, and send them when this page requests itself again.
			next := v.r.URL.RequestURI()
			v.show(http.StatusOK, page{Title: "One moment", Next: next},
				notice("One moment", "You followed a link from another site.", link{Text: "Continue to the page", To: next}))
			return
		}
		next := ""
		if v.r.Method == http.MethodGet && v.r.URL.Path != "/" {
			next = "?next=" + url.QueryEscape(v.r.URL.RequestURI())
		}
		http.Redirect(v.w, v.r, "/sign-in"+next, http.StatusSeeOther)
	})
}

func comesFromElsewhere(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && wantsPage(r)
}

// public calls f without authentication.
func (k *Console) public(f func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{console: k, w: w, r: r, body: r.Body, who: k.visitor(r), now: k.config.Now()}
		r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
		f(v)
	}
}

// sameOrigin refuses requests from pages of another origin, and reads the form
// of others.
func (k *Console) sameOrigin(f func(*visit)) func(*visit) {
	return func(v *visit) {
		if err := k.origins.Check(v.r); err != nil {
			v.fail(http.StatusForbidden, "Request from another web site",
				"Only Firn's own pages can make changes. Open the console itself and try again.")
			return
		}
		if err := v.r.ParseForm(); err != nil {
			v.fail(http.StatusBadRequest, "Cannot read the form", "It may be too large.")
			return
		}
		f(v)
	}
}

// A page is what the frame of a page needs.
type page struct {
	Title   string
	Section string // in the navigation
	Live    bool   // it requests itself every few seconds
	Next    string // the address that it requests at once; empty if none
}

// A link leads to another page.
type link struct{ Text, To, Class string }

// show writes a page.
func (v *visit) show(status int, p page, body templ.Component) {
	var b bytes.Buffer
	if err := frame(v, p, body).Render(context.WithoutCancel(v.r.Context()), &b); err != nil {
		v.console.front.Logger.Error("console: rendering a page failed", "path",
			textfmt.Short(v.r.URL.Path), "error", err)
		http.Error(v.w, "The page cannot be shown; see the server's log.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
}

func (v *visit) fail(status int, title, text string) {
	v.show(status, page{Title: title}, notice(title, text, link{Text: "Back to the overview", To: "/"}))
}

// failWith shows an error of the backend.
func (v *visit) failWith(err error, late bool) {
	if errors.Is(err, grant.ErrNotFound) || errors.Is(err, errNoSequencer) {
		name := v.r.PathValue("name")
		links := []link{{Text: "All sequencers", To: "/"}}
		if v.who.may(auth.Change, name) && v.console.admin != nil {
			links = slices.Insert(links, 0, link{"Create it", "/create?name=" + url.QueryEscape(name), "button"})
		}
		v.show(http.StatusNotFound, page{Title: name, Section: "overview"}, notice("Sequencer "+name+" not found",
			"It was never created or used, or the name is mistyped.", links...))
		return
	}
	f := service.ProblemOf(err, v.console.front.RequestTimeout, late)
	if f.Cause != nil {
		v.console.front.Logger.Log(v.r.Context(), f.Level(), "console: request failed", "path",
			textfmt.Short(v.r.URL.Path), "error", f.Cause)
	}
	v.fail(f.Kind.Status(), "The request failed", sentence(f.Detail)+".")
}

// forbidden reports that the token does not allow something.
func (v *visit) forbidden(what string) {
	v.fail(http.StatusForbidden, "Permission denied", what)
}
