package console

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/service"
)

// An act is an administrative action on a sequencer.
type act struct {
	Verb   string
	Title  string
	Button string
	Means  []string
	Typed  bool // the user must type the name, because it cannot be undone
	Danger bool
	do     func(service.Administrator, context.Context, string) (grant.Info, error)
	waits  bool // for the windows of other servers
}

var acts = map[string]act{
	"attach": {
		Verb: "attach", Title: "Attach %s", Button: "Attach sequencer",
		Means: []string{
			"Servers can acquire its node IDs and make IDs again.",
			"New IDs are above all earlier ones: no ID is repeated.",
		},
		do: service.Administrator.Attach,
	},
	"detach": {
		Verb: "detach", Title: "Detach %s", Button: "Detach sequencer", Danger: true,
		Means: []string{
			"All servers give their node IDs back, at the next renewal at the latest.",
			"Until it is attached again, every request for its IDs is refused. Other sequencers are not affected.",
			"Nothing is lost: you can attach it again.",
		},
		do: service.Administrator.Detach, waits: true,
	},
	"destroy": {
		Verb: "destroy", Title: "Destroy %s", Button: "Destroy permanently", Danger: true, Typed: true,
		Means: []string{
			"All servers give their node IDs back, and every further request for its IDs is refused.",
			"Existing IDs stay unique: the store keeps the records of all node IDs and deletes nothing.",
			"This cannot be undone. The sequencer can only be created again with the same layout; its new IDs are then above the old ones.",
		},
		do: service.Administrator.Destroy, waits: true,
	},
	"recreate": {
		Verb: "recreate", Title: "Create %s again", Button: "Create again",
		Means: []string{
			"Servers can acquire its node IDs and make IDs, with its previous layout.",
			"New IDs are above all earlier ones: no ID is repeated.",
		},
		do: func(a service.Administrator, ctx context.Context, name string) (grant.Info, error) {
			info, err := a.Lookup(ctx, name)
			if err != nil {
				return info, err
			}
			return a.Create(ctx, name, info.Config)
		},
	},
}

// A job is an act that waits for other servers, and continues after its request
// has ended.
type job struct {
	Verb    string
	Began   time.Time
	Running bool
	Fault   string
}

// jobs has the jobs of all sequencers, one per name. The zero value is empty.
type jobs struct {
	mu     sync.Mutex
	byName map[string]*job
}

// of returns a copy of a sequencer's job, or nil.
func (j *jobs) of(name string) *job {
	j.mu.Lock()
	defer j.mu.Unlock()
	if found := j.byName[name]; found != nil {
		c := *found
		return &c
	}
	return nil
}

// jobLimit is how long a job may wait: longer than windows are.
const jobLimit = 10 * time.Minute

// maxJobs is how many sequencers can have a job.
const maxJobs = 100

// begin starts an act and waits a little for it. It reports whether the act has
// ended.
func (k *Console) begin(ctx context.Context, admin service.Administrator, name string, a act, wait time.Duration) (done bool, err error) {
	j, now := &k.jobs, k.c.Now() // not under the lock: a clock may panic
	j.mu.Lock()
	if j.byName == nil {
		j.byName = make(map[string]*job)
	}
	if old := j.byName[name]; old != nil && old.Running {
		j.mu.Unlock()
		return false, nil
	}
	for old := range maps.Clone(j.byName) {
		if !j.byName[old].Running {
			delete(j.byName, old)
		}
	}
	if len(j.byName) >= maxJobs {
		j.mu.Unlock()
		return false, errBusy
	}
	mine := &job{Verb: a.Verb, Began: now, Running: true}
	j.byName[name] = mine
	result := make(chan error, 1)
	began := k.background(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobLimit)
		defer cancel()
		defer context.AfterFunc(k.ctx, cancel)()
		_, err := a.do(admin, ctx, name)
		k.fleet.forget()
		j.mu.Lock()
		mine.Running = false
		if err != nil {
			mine.Fault = storeFault(err)
		} else if j.byName[name] == mine {
			delete(j.byName, name)
		}
		j.mu.Unlock()
		result <- err
	})
	if !began {
		delete(j.byName, name)
	}
	j.mu.Unlock()
	if !began {
		return false, errBusy
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case err := <-result:
		return true, err
	case <-t.C:
		return false, nil
	}
}

var errBusy = errors.New("the server is busy with other sequencers, or shutting down")

// jobWait is how long a page waits for a job: most are done by then.
const jobWait = 1500 * time.Millisecond

// A confirmPage asks for confirmation.
type confirmPage struct {
	Name  string
	Title string
	Act   act
	Held  []grant.NodeInfo
	More  int
	Fault string
	Typed string
}

// by returns the Administrator for a visitor's changes, which are logged.
func (k *Console) by(v *visit) service.Administrator {
	return service.By(k.admin, service.Client{Name: v.who.Name(), Address: v.r.RemoteAddr}, k.c.Log)
}

// allowed finds the act of a path, and checks whether the visitor may perform
// it.
func (k *Console) allowed(v *visit) (name string, a act, ok bool) {
	name = v.r.PathValue("name")
	a, known := acts[v.r.PathValue("act")]
	switch {
	case !known:
		v.fail(http.StatusNotFound, "Page not found", "A sequencer can be attached, detached, destroyed and created again.")
	case service.CheckName(name) != nil:
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(service.CheckName(name))+".")
	case !v.who.MayAdmin(name):
		v.forbidden("Only a token with the role admin can change " + name + ".")
	case k.admin == nil:
		v.fail(http.StatusConflict, "No store", "This server runs with a static node ID and without a store. Start it with --store to administer sequencers.")
	default:
		return name, a, true
	}
	return name, a, false
}

// confirm asks for confirmation of an act.
func (k *Console) confirm(v *visit) {
	if name, a, ok := k.allowed(v); ok {
		k.showConfirm(v, http.StatusOK, name, a, "", "")
	}
}

func (k *Console) showConfirm(v *visit, status int, name string, a act, typed, fault string) {
	p := confirmPage{Name: name, Title: strings.Replace(a.Title, "%s", name, 1), Act: a, Typed: typed, Fault: fault}
	ctx, cancel := k.limited(v.r)
	defer cancel()
	q, err := k.fleet.lookup(ctx, name)
	if err != nil {
		v.failed(err, ctx.Err() != nil)
		return
	}
	if !slices.Contains(actsOf(q.Info.State), a.Verb) {
		v.fail(http.StatusConflict, "Not possible now", "The sequencer "+name+" is "+q.Info.State.String()+".")
		return
	}
	for _, n := range q.Nodes {
		if n.Held && n.Until.After(v.now) {
			p.Held = append(p.Held, n)
		}
	}
	if len(p.Held) > maxHeldShown {
		p.More, p.Held = len(p.Held)-maxHeldShown, p.Held[:maxHeldShown]
	}
	v.show(status, "confirm", page{Title: p.Title, Section: "overview", Body: p})
}

// act performs a confirmed act.
func (k *Console) act(v *visit) {
	name, a, ok := k.allowed(v)
	if !ok {
		return
	}
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusBadRequest, "Cannot read the form", "It may be too large.")
		return
	}
	if typed := strings.TrimSpace(v.r.PostForm.Get("confirm")); a.Typed && typed != name {
		k.showConfirm(v, http.StatusBadRequest, name, a, typed, "The typed name does not match: type "+name+" to confirm.")
		return
	}
	if a.waits {
		if _, err := k.begin(v.r.Context(), k.by(v), name, a, jobWait); err != nil {
			v.failed(err, false)
			return
		}
	} else {
		ctx, cancel := k.limited(v.r)
		defer cancel()
		_, err := a.do(k.by(v), ctx, name)
		k.fleet.forget()
		if err != nil {
			v.failed(err, ctx.Err() != nil)
			return
		}
	}
	k.fleet.forget()
	http.Redirect(v.w, v.r, "/sequencers/"+url.PathEscape(name), http.StatusSeeOther)
}

// A createPage is the form for a new sequencer.
type createPage struct {
	Name, Layout, Prefix, MaxAhead, Window string
	Presets                                []firn.PresetInfo
	Fault                                  string
}

func (k *Console) newSequencer(v *visit) {
	if !v.who.Admin() {
		v.forbidden("Only a token with the role admin can create sequencers.")
		return
	}
	q := v.r.URL.Query()
	k.showCreate(v, http.StatusOK, createPage{Name: q.Get("name"), Layout: q.Get("layout")})
}

func (k *Console) showCreate(v *visit, status int, p createPage) {
	for preset := range firn.Presets() {
		if !preset.Layout.ReadOnly() {
			p.Presets = append(p.Presets, preset)
		}
	}
	v.show(status, "create", page{Title: "New sequencer", Section: "overview", Body: p})
}

// createSequencer creates a sequencer from the form.
func (k *Console) createSequencer(v *visit) {
	if err := v.r.ParseForm(); err != nil {
		v.fail(http.StatusBadRequest, "Cannot read the form", "It may be too large.")
		return
	}
	form := func(key string) string { return strings.TrimSpace(v.r.PostForm.Get(key)) }
	p := createPage{Name: form("name"), Layout: form("layout"), Prefix: form("prefix"), MaxAhead: form("max-ahead"), Window: form("window")}
	again := func(status int, fault string) {
		p.Fault = fault
		k.showCreate(v, status, p)
	}
	if err := service.CheckName(p.Name); err != nil {
		again(http.StatusBadRequest, detail(err)+".")
		return
	}
	if !v.who.MayAdmin(p.Name) {
		v.forbidden("It does not allow creating the sequencer " + p.Name + ".")
		return
	}
	if k.admin == nil {
		v.fail(http.StatusConflict, "No store", "This server runs with a static node ID and without a store. Start it with --store to administer sequencers.")
		return
	}
	c, err := p.config(k.admin)
	if err != nil {
		again(http.StatusBadRequest, detail(err)+".")
		return
	}
	ctx, cancel := k.limited(v.r)
	defer cancel()
	info, err := k.admin.Lookup(ctx, p.Name)
	switch {
	case err == nil && info.State != grant.Destroyed && info.State != grant.Purged:
		again(http.StatusConflict, "The sequencer "+p.Name+" already exists.")
		return
	case err != nil && !errors.Is(err, grant.ErrNotFound):
		v.failed(err, ctx.Err() != nil)
		return
	}
	_, err = k.by(v).Create(ctx, p.Name, c)
	k.fleet.forget()
	switch {
	case errors.Is(err, grant.ErrMismatch):
		again(http.StatusConflict, detail(err)+": the settings of a sequencer never change. Choose another name, or use the existing settings.")
		return
	case errors.Is(err, firn.ErrTimeOver):
		again(http.StatusBadRequest, detail(err)+".")
		return
	case err != nil:
		v.failed(err, ctx.Err() != nil)
		return
	}
	http.Redirect(v.w, v.r, "/sequencers/"+url.PathEscape(p.Name), http.StatusSeeOther)
}

// config converts the form to a configuration.
func (p *createPage) config(a service.Administrator) (grant.Config, error) {
	layout := firn.Default()
	if p.Layout != "" {
		var err error
		if layout, err = firn.ParseLayout(p.Layout); err != nil {
			return grant.Config{}, err
		}
	}
	if layout.ReadOnly() {
		return grant.Config{}, errors.New("IDs of this layout can be read but not made")
	}
	ahead, err := readLength(p.MaxAhead)
	if err != nil {
		return grant.Config{}, err
	}
	window, err := readLength(p.Window)
	if err != nil {
		return grant.Config{}, err
	}
	c, err := a.Configure(layout, ahead, window)
	c.Prefix = p.Prefix
	return c, cmp.Or(err, c.Check())
}

// readLength parses a duration; it is nil if the field is empty.
func readLength(s string) (*time.Duration, error) {
	if s == "" {
		return nil, nil
	}
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil || d < 0 {
		return nil, errors.New("“" + cutText(s) + "” is not a duration such as 200ms, 1s or 5m")
	}
	return &d, nil
}
