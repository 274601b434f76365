package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/metrics"
	"github.com/firnid/firn/server/service"
)

// Config says what a Console shows. Only the Backend is needed; the zero value
// of any other field means what the field says.
type Config struct {
	// Backend makes IDs.
	Backend service.Backend

	// Figures are what this server's sequencers have done; nil means that nothing
	// is known.
	Figures func() []metrics.Sequencer

	// Self is this server's ID as a member, or empty; nil means that it is none.
	Self func() string

	// Guard knows who may do what; nil lets everyone do everything.
	Guard *auth.Guard

	// TLS is the state of a request's connection, or nil where it has no TLS; nil
	// means that of http.Server.
	TLS func(*http.Request) *tls.ConnectionState

	// Trusted are other origins whose pages may act here, such as that of a proxy.
	Trusted []string

	// Limit is how long a request may wait; 0 means service.DefaultLimit.
	Limit time.Duration

	// Layout is that of a sequencer that is created when its first ID is made; the
	// zero Layout means firn.Default.
	Layout firn.Layout

	Version string
	Now     func() time.Time // the clock; nil is the system's
	Every   time.Duration    // how often figures are looked at; 0 means 2 s
	Log     *slog.Logger     // of failures that are nobody's but the server's; nil means that nobody is told
}

// A Console is the pages. It is safe for use by many goroutines at once, must
// be made by New, and ends with Close.
type Console struct {
	c        Config
	admin    service.Administrator // nil without a store
	sessions *auth.Sessions
	origins  *auth.Origins
	mux      *http.ServeMux
	history  *history
	fleet    *fleet

	streams streams // of pages that are open

	ctx     context.Context // ends with Close
	end     context.CancelFunc
	closing sync.Mutex // held to end ctx, and to begin what wg waits for
	wg      sync.WaitGroup
	jobs    jobs
}

// sessionLife is how long a browser stays signed in.
const sessionLife = 12 * time.Hour

// New makes a Console. The error says what is wrong with Config.Trusted.
func New(c Config) (*Console, error) {
	if c.Limit == 0 {
		c.Limit = service.DefaultLimit
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Every == 0 {
		c.Every = 2 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Layout.IsZero() {
		c.Layout = firn.Default()
	}
	if c.Figures == nil {
		c.Figures = func() []metrics.Sequencer { return nil }
	}
	if c.Self == nil {
		c.Self = func() string { return "" }
	}
	if c.TLS == nil {
		c.TLS = func(r *http.Request) *tls.ConnectionState { return r.TLS }
	}
	k := &Console{c: c, mux: http.NewServeMux(), history: newHistory(c.Every)}
	k.admin = c.Backend.Admin()
	var err error
	if k.origins, err = auth.NewOrigins(c.Trusted...); err != nil {
		return nil, err
	}
	if k.sessions, err = auth.NewSessions(nil, sessionLife); err != nil {
		return nil, err
	}
	k.fleet = newFleet(k)
	k.ctx, k.end = context.WithCancel(context.Background())
	k.routes()
	k.background(k.sample)
	return k, nil
}

// Close ends what runs beside requests, and the streams of pages that are open.
// It may be called more than once, and returns when all has ended.
func (k *Console) Close() {
	k.closing.Lock()
	k.end()
	k.closing.Unlock()
	k.wg.Wait()
}

// background runs f beside requests, unless the console is closed. f must end
// soon after k.ctx does.
func (k *Console) background(f func()) bool {
	k.closing.Lock()
	defer k.closing.Unlock()
	if k.ctx.Err() != nil {
		return false
	}
	k.wg.Go(f)
	return true
}

// routes are all paths. Each needs to be let in, but for those that say
// otherwise.
func (k *Console) routes() {
	get := func(path string, f func(*visit)) { k.mux.HandleFunc("GET "+path, k.page(f)) }
	post := func(path string, f func(*visit)) { k.mux.HandleFunc("POST "+path, k.page(k.same(f))) }

	get("/{$}", k.overview)
	get("/create", k.newSequencer)
	post("/create", k.createSequencer)
	get("/sequencers/{name}", k.sequencer)
	get("/sequencers/{name}/{act}", k.confirm)
	post("/sequencers/{name}/{act}", k.act)
	get("/members", k.members)
	get("/inspect", k.inspectForm)
	get("/inspect/{ids}", k.inspect)
	k.mux.HandleFunc("POST /inspect", k.page(k.inspectPosted))
	post("/make", k.makeID)
	get("/plan", k.plan)
	get("/time", k.between)
	get("/events", k.events)
	post("/sign-out", k.signOut)

	k.mux.HandleFunc("GET /sign-in", k.open(k.signInForm))
	k.mux.HandleFunc("POST /sign-in", k.open(k.same(k.signIn)))
	k.mux.HandleFunc("GET /console/{version}/{file...}", k.asset)
}

// Matches reports whether the console answers a request: to one of its paths,
// or to any path for whoever asks for a page. What the API has comes before.
func (k *Console) Matches(r *http.Request) bool {
	if r.URL.Path == "/" {
		return wantsPage(r)
	}
	if _, pattern := k.mux.Handler(r); pattern != "" {
		return true
	}
	return wantsPage(r)
}

// wantsPage reports whether a browser asks for something to look at.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// policy allows what the server itself sends and nothing else: no inline script
// or style, no eval, no frame, no form to elsewhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP answers a request.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // addresses of pages have IDs in them
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if _, pattern := k.mux.Handler(r); pattern == "" {
		k.page(func(v *visit) {
			v.fail(http.StatusNotFound, "There is no such page", "The address may be mistyped, or come from another version of Firn.")
		})(w, r)
		return
	}
	k.mux.ServeHTTP(w, r)
}

// A visit is a request of somebody.
type visit struct {
	k   *Console
	w   http.ResponseWriter
	r   *http.Request
	who visitor
	now time.Time
}

// maxBody bounds what a form can hold: some thousands of IDs.
const maxBody = 256 << 10

// page lets in who may see pages, and asks others for a token.
func (k *Console) page(f func(*visit)) http.HandlerFunc {
	return k.open(func(v *visit) {
		if v.who.Known {
			f(v)
			return
		}
		if comesFromElsewhere(v.r) {
			// A link in a ticket: browsers keep SameSite=Strict cookies back for it, and
			// send them when this page asks again.
			v.show(http.StatusOK, "again", page{Title: "One moment", Body: v.r.URL.RequestURI()})
			return
		}
		if v.r.URL.Path == "/events" {
			http.Error(v.w, "sign in again", http.StatusUnauthorized)
			return
		}
		if v.r.Header.Get("HX-Request") != "" {
			v.w.Header().Set("HX-Redirect", "/sign-in")
			v.w.WriteHeader(http.StatusUnauthorized)
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
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && wantsPage(r)
}

// open answers whoever asks.
func (k *Console) open(f func(*visit)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		f(&visit{k: k, w: w, r: r, who: k.visitor(r), now: k.c.Now()})
	}
}

// same refuses what a page of another origin sends.
func (k *Console) same(f func(*visit)) func(*visit) {
	return func(v *visit) {
		if err := k.origins.Check(v.r); err != nil {
			v.fail(http.StatusForbidden, "That came from another web site", "Only Firn's own pages can change something here. Open the console itself and try there.")
			return
		}
		f(v)
	}
}

// A page is what the frame of all pages needs.
type page struct {
	Title   string
	Section string // of the navigation
	Live    string // the address of its stream; empty where nothing changes
	Body    any

	Who     visitor
	Now     time.Time
	Version string
	Assets  string // the directory of files that browsers may keep
	Store   bool
}

// show writes a page.
func (v *visit) show(status int, name string, p page) {
	p.Who, p.Now, p.Version, p.Assets, p.Store = v.who, v.now, v.k.c.Version, assets().dir, v.k.admin != nil
	v.write(status, name, "frame", p)
}

// part writes a part of a page, for htmx.
func (v *visit) part(name, part string, body any) { v.write(http.StatusOK, name, part, body) }

func (v *visit) write(status int, name, part string, data any) {
	var b bytes.Buffer
	if err := render(&b, name, part, data); err != nil {
		v.k.c.Log.Error("console: a page cannot be written", "page", name, "error", err)
		http.Error(v.w, "The page cannot be shown; the server's log says why.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(b.Bytes())
}

// isPart reports whether htmx asks for the part of a page that changes.
func (v *visit) isPart() bool {
	return v.r.Header.Get("HX-Request") != "" && v.r.Header.Get("HX-History-Restore-Request") == ""
}

// A failure is a page about something that did not work.
type failure struct{ Title, Detail string }

func (v *visit) fail(status int, title, text string) {
	v.show(status, "failure", page{Title: title, Body: failure{title, text}})
}

// failed says what an error of the backend is.
func (v *visit) failed(err error, late bool) {
	if errors.Is(err, grant.ErrNotFound) || errors.Is(err, errNoSequencer) {
		name := v.r.PathValue("name")
		v.show(http.StatusNotFound, "missing", page{Title: name, Section: "overview", Body: missingPage{name, v.who.MayAdmin(name) && v.k.admin != nil}})
		return
	}
	f := service.FaultOf(err, v.k.c.Limit, late)
	if f.Cause != nil {
		v.k.c.Log.Log(v.r.Context(), f.Level(), "console: request failed", "path", v.r.URL.Path, "error", f.Cause)
	}
	v.fail(f.Kind.Status(), "That did not work", strings.ToUpper(f.Detail[:min(1, len(f.Detail))])+f.Detail[min(1, len(f.Detail)):]+".")
}

// forbidden says that the token does not allow something.
func (v *visit) forbidden(what string) {
	v.fail(http.StatusForbidden, "Your token does not allow this", what)
}
