package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/service"
)

// An action is what an administrator can do to a sequencer.
type action struct {
	Verb   string
	Title  string
	Button string
	Means  []string
	Typed  bool // the user must type the name, because it cannot be undone
	Danger bool
	do     func(*service.StoreAdmin, context.Context, string) (grant.Info, error)
}

// class returns the class of its button.
func (a action) class() string {
	if a.Danger {
		return "danger"
	}
	return "main"
}

var actions = map[string]action{
	"attach": {
		Verb: "attach", Title: "Attach %s", Button: "Attach sequencer",
		Means: []string{
			"Servers can acquire its node IDs and make IDs again.",
			"New IDs are above all earlier ones: no ID is repeated.",
		},
		do: (*service.StoreAdmin).Attach,
	},
	"detach": {
		Verb: "detach", Title: "Detach %s", Button: "Detach sequencer", Danger: true,
		Means: []string{
			"All servers give their node IDs back, at the next renewal at the latest.",
			"Until it is attached again, every request for its IDs is refused. Other sequencers are not affected.",
			"Nothing is lost: you can attach it again.",
		},
		do: (*service.StoreAdmin).Detach,
	},
	"destroy": {
		Verb: "destroy", Title: "Destroy %s", Button: "Destroy permanently", Danger: true, Typed: true,
		Means: []string{
			"All servers give their node IDs back, and every further request for its IDs is refused.",
			"Existing IDs stay unique: the store keeps the records of all node IDs and deletes nothing.",
			"This cannot be undone. The sequencer can only be created again with the same layout; its new IDs are then above " +
				"the old ones.",
		},
		do: (*service.StoreAdmin).Destroy,
	},
	"recreate": {
		Verb: "recreate", Title: "Create %s again", Button: "Create again",
		Means: []string{
			"Servers can acquire its node IDs and make IDs, with its previous layout.",
			"New IDs are above all earlier ones: no ID is repeated.",
		},
		do: func(a *service.StoreAdmin, ctx context.Context, name string) (grant.Info, error) {
			info, err := a.Lookup(ctx, name)
			if err != nil {
				return info, err
			}
			return a.Create(ctx, name, info.Config)
		},
	},
}

// jobLimit is how long an action may wait for other servers: longer than windows
// are. jobWait is how long its page waits: most are done by then.
const (
	jobLimit = 10 * time.Minute
	jobWait  = 1500 * time.Millisecond
)

// startAction starts an action and waits a little for it. The action continues
// after its page was answered.
func (k *Console) startAction(ctx context.Context, admin *service.StoreAdmin, name string, a action) error {
	result := make(chan error, 1)
	if !k.background(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobLimit)
		defer cancel()
		defer context.AfterFunc(k.ctx, cancel)()
		_, err := a.do(admin, ctx, name)
		k.snapshots.forget()
		if err != nil {
			k.front.Logger.Warn("console: "+a.Verb+" did not finish", "sequencer", name, "error", err)
		}
		result <- err
	}) {
		return fmt.Errorf("%w: the server is shutting down", firn.ErrClosed)
	}
	t := time.NewTimer(jobWait)
	defer t.Stop()
	select {
	case err := <-result:
		return err
	case <-t.C:
		return nil
	}
}

// A confirmPage asks for confirmation.
type confirmPage struct {
	Name   string
	Title  string
	Action action
	Held   uint64 // node IDs in use
	Until  time.Time
	Error  string
	Typed  string
}

func (p confirmPage) inUse() string {
	return fmt.Sprintf("In use now: servers hold %s, until %s or longer.", plural(p.Held, "node ID"), clock(p.Until))
}

// adminFor returns the StoreAdmin for a visitor's changes, which are logged.
func (k *Console) adminFor(v *visit) *service.StoreAdmin {
	return k.admin.By(service.Client{Name: v.who.Name(), Address: v.r.RemoteAddr}, k.front.Logger)
}

// allowed finds the action of a path, and checks whether the visitor may perform
// it.
func (k *Console) allowed(v *visit) (name string, a action, ok bool) {
	name = v.r.PathValue("name")
	a, known := actions[v.r.PathValue("action")]
	switch {
	case !known:
		v.fail(http.StatusNotFound, "Page not found", "A sequencer can be attached, detached, destroyed and created again.")
	case service.CheckName(name) != nil:
		v.fail(http.StatusBadRequest, "Invalid sequencer name", detail(service.CheckName(name))+".")
	case !v.who.may(auth.Change, name):
		v.forbidden("Only a token with the role admin can change " + name + ".")
	case k.admin == nil:
		v.noStore()
	default:
		return name, a, true
	}
	return name, a, false
}

func (v *visit) noStore() {
	v.fail(http.StatusConflict, "No store", "This server runs with a static node ID and without a store. Start it with "+
		"--store to administer sequencers.")
}

// confirm asks for confirmation of an action.
func (k *Console) confirm(v *visit) {
	if name, a, ok := k.allowed(v); ok {
		k.showConfirm(v, http.StatusOK, name, a, "", "")
	}
}

func (k *Console) showConfirm(v *visit, status int, name string, a action, typed, problem string) {
	p := confirmPage{Name: name, Title: strings.Replace(a.Title, "%s", name, 1), Action: a, Typed: typed, Error: problem}
	ctx, cancel := k.front.Limited(v.r.Context())
	defer cancel()
	q, s, err := k.snapshots.lookup(ctx, name)
	if err = cmp.Or(err, s.Err); err != nil {
		v.failWith(err, ctx.Err() != nil)
		return
	}
	if !slices.Contains(actionsOf(q.Info), a.Verb) {
		is := stateOf(q.Info)
		v.fail(http.StatusConflict, "Not possible now", "The sequencer "+name+" is "+is.Word+". "+is.Means)
		return
	}
	p.Held, p.Until = heldWindows(q.Nodes, v.now)
	v.show(status, page{Title: p.Title, Section: "overview"}, p.view())
}

// perform performs a confirmed action.
func (k *Console) perform(v *visit) {
	name, a, ok := k.allowed(v)
	if !ok {
		return
	}
	if typed := strings.TrimSpace(v.r.PostForm.Get("confirm")); a.Typed && typed != name {
		k.showConfirm(v, http.StatusBadRequest, name, a, typed, "The typed name does not match: type "+name+" to confirm.")
		return
	}
	if err := k.startAction(v.r.Context(), k.adminFor(v), name, a); err != nil {
		v.failWith(err, false)
		return
	}
	k.snapshots.forget()
	http.Redirect(v.w, v.r, addressOf(name), http.StatusSeeOther)
}

// A createPage is the form for a new sequencer.
type createPage struct {
	Name, Layout, Prefix, MaxAhead, Window, Error string
}

func (k *Console) newSequencer(v *visit) {
	if !v.who.mayAny(auth.Change) {
		v.forbidden("Only a token with the role admin can create sequencers.")
		return
	}
	q := v.r.URL.Query()
	v.showCreate(http.StatusOK, createPage{Name: q.Get("name"), Layout: q.Get("layout")})
}

func (v *visit) showCreate(status int, p createPage) {
	v.show(status, page{Title: "New sequencer", Section: "overview"}, p.view())
}

// fieldLabels are the labels of the fields of a service.Creation in the form.
var fieldLabels = map[string]string{
	"layout": "Layout", "max_ahead": "Maximum ahead of the clock", "window": "Window", "prefix": "Prefix",
}

// createSequencer creates a sequencer from the form.
func (k *Console) createSequencer(v *visit) {
	form := func(key string) string { return strings.TrimSpace(v.r.PostForm.Get(key)) }
	duration := func(key string) string { return strings.ReplaceAll(form(key), " ", "") } // 40 s
	p := createPage{Name: form("name"), Layout: form("layout"), Prefix: form("prefix"),
		MaxAhead: duration("max-ahead"), Window: duration("window")}
	again := func(status int, problem string) {
		p.Error = problem
		v.showCreate(status, p)
	}
	if err := service.CheckName(p.Name); err != nil {
		again(http.StatusBadRequest, detail(err)+".")
		return
	}
	if !v.who.may(auth.Change, p.Name) {
		v.forbidden("You may not create the sequencer " + p.Name + ".")
		return
	}
	if k.admin == nil {
		v.noStore()
		return
	}
	given := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	n := service.Creation{Layout: given(p.Layout), MaxAhead: given(p.MaxAhead),
		Window: given(p.Window), Prefix: given(p.Prefix)}
	ctx, cancel := k.front.Limited(v.r.Context())
	defer cancel()
	c, err := n.Config(k.admin)
	if err == nil {
		_, err = k.adminFor(v).Create(ctx, p.Name, c)
		k.snapshots.forget()
	}
	wrong, invalid := errors.AsType[*service.CreationError](err)
	switch {
	case invalid:
		var all []string
		for _, w := range wrong.Wrong {
			all = append(all, fieldLabels[w.Field]+": "+w.Text+".")
		}
		again(http.StatusBadRequest, strings.Join(all, " "))
		return
	case errors.Is(err, grant.ErrMismatch):
		again(http.StatusConflict, sentence(service.AdminProblem(p.Name, err, 0, false).Detail)+".")
		return
	case err != nil:
		v.failWith(err, ctx.Err() != nil)
		return
	}
	http.Redirect(v.w, v.r, addressOf(p.Name), http.StatusSeeOther)
}
