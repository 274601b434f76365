package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/members"
)

// An Administrator is a Backend whose sequencers can be looked at and changed, for all
// servers of its store. It must be safe for use by many goroutines at once.
type Administrator interface {
	// Sequencers calls yield for each sequencer, in the order of their names. An error
	// with a name is of that one's record.
	Sequencers(ctx context.Context, yield func(name string, info grant.Info, err error) bool) error

	// Lookup returns one, or an error that is grant.ErrNotFound.
	Lookup(ctx context.Context, name string) (grant.Info, error)

	// Configure is grant.UsualConfig with its store.
	Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error)

	// Create creates one, or creates it again.
	Create(ctx context.Context, name string, c grant.Config) (grant.Info, error)

	// Attach, Detach and Destroy are those of package grant. The last two wait for
	// windows until ctx is done, and go on when they are called again.
	Attach(ctx context.Context, name string) (grant.Info, error)
	Detach(ctx context.Context, name string) (grant.Info, error)
	Destroy(ctx context.Context, name string) (grant.Info, error)

	// Nodes calls yield for each node number of a sequencer that was ever used.
	Nodes(ctx context.Context, name string, yield func(n grant.NodeInfo, err error) bool) error
}

// A Lister knows the servers of its store.
type Lister interface {
	Members(ctx context.Context) ([]members.Member, error)
}

// SequencerJSON is a sequencer on the wire. Durations are as Go writes them, times as
// Stamp does.
type SequencerJSON struct {
	Name        string `json:"name"`
	State       string `json:"state"`
	Layout      string `json:"layout"`
	MaxAhead    string `json:"max_ahead"`
	Window      string `json:"window"`
	Incarnation uint64 `json:"incarnation"`
	Floor       string `json:"floor,omitempty"`
	Created     string `json:"created"`
	Longest     string `json:"longest_window,omitempty"` // that it ever had
	Version     int    `json:"version,omitempty"`        // of its records
	Error       string `json:"error,omitempty"`
}

// InJSON is a sequencer as it goes on the wire.
func InJSON(i grant.Info) SequencerJSON {
	j := SequencerJSON{
		Name: i.Name, State: i.State.String(), Layout: i.Config.Layout.String(),
		MaxAhead: i.Config.MaxAhead.String(), Window: i.Config.Window.String(),
		Incarnation: i.Incarnation, Created: Stamp(i.Created),
		Longest: i.LongestWindow.String(), Version: i.Version,
	}
	if !i.Floor.IsZero() {
		j.Floor = Stamp(i.Floor)
	}
	return j
}

// Stamp is a time in RFC 3339 and UTC, to the millisecond, which is what records have.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// admin is what a request that changes something needs: the Administrator, and that no
// page of another origin sends it.
func (h *Handler) admin(r *http.Request) (Administrator, *problem) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && isCrossSite(r) {
		return nil, problemf(crossSite, "a page of another origin cannot change sequencers")
	}
	a, ok := h.backend.(Administrator)
	if !ok {
		return nil, problemf(noStore, "this server was started with a node number of its own and knows no other servers: start it with --store to administer sequencers")
	}
	return a, nil
}

// named is admin for a path with a name.
func (h *Handler) named(r *http.Request) (Administrator, string, *problem) {
	name := r.PathValue("name")
	if err := CheckName(name); err != nil {
		return nil, "", problemf(badName, "%v", err)
	}
	a, p := h.admin(r)
	return a, name, p
}

// sequencers answers with all sequencers that whoever asks may see.
func (h *Handler) sequencers(w http.ResponseWriter, r *http.Request) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	a, p := h.admin(r)
	if p != nil {
		return p
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	all := []SequencerJSON{}
	err := a.Sequencers(ctx, func(name string, info grant.Info, err error) bool {
		if !h.mayRead(r, name) {
			return true
		}
		if err != nil {
			all = append(all, SequencerJSON{Name: name, Error: detailOf(err)})
		} else {
			all = append(all, InJSON(info))
		}
		return true
	})
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sequencers": all})
}

// sequencer answers with one sequencer, creates it, or destroys it.
func (h *Handler) sequencer(w http.ResponseWriter, r *http.Request) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	a, name, p := h.named(r)
	if p != nil {
		return p
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	switch r.Method {
	case http.MethodPut:
		return h.create(ctx, w, r, a, name)
	case http.MethodDelete:
		return h.empty(ctx, w, r, a, name, a.Destroy, grant.Destroying, grant.Destroyed)
	}
	info, err := a.Lookup(ctx, name)
	if errors.Is(err, grant.ErrNotFound) {
		return problemf(noSequencer, "there is no sequencer %s; PUT creates it", name)
	}
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	type node struct {
		Node  uint64 `json:"node"`
		Held  bool   `json:"held"`
		Host  string `json:"host"`
		Until string `json:"until"`
		Wall  string `json:"written"`
	}
	answer := struct {
		SequencerJSON
		Nodes []node `json:"nodes"`
	}{InJSON(info), []node{}}
	err = a.Nodes(ctx, name, func(n grant.NodeInfo, err error) bool {
		if err == nil {
			answer.Nodes = append(answer.Nodes, node{n.Node, n.Held, n.Host, Stamp(n.Until), Stamp(n.Wall)})
		}
		return true
	})
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// create creates a sequencer as the body says.
func (h *Handler) create(ctx context.Context, w http.ResponseWriter, r *http.Request, a Administrator, name string) *problem {
	text, err := io.ReadAll(io.LimitReader(r.Body, int64(h.limits.Body)+1))
	switch {
	case err != nil:
		return problemf(badBody, "the body cannot be read")
	case len(text) > h.limits.Body:
		return problemf(badBody, "the body has more than %d bytes", h.limits.Body)
	}
	var body [len(createKeys)]*string
	if len(text) > 0 {
		if body, err = readCreate(text); err != nil {
			return problemf(badBody, `%v: it is such as {"layout":"default","max_ahead":"1s","window":"60s"}, and each may be left out`, err)
		}
	}
	layoutText, aheadText, windowText := body[0], body[1], body[2]
	layout := firn.Default()
	var f faults
	if layoutText != nil {
		if layout, err = firn.ParseLayout(*layoutText); err != nil {
			f.add("layout: %s", detailOf(err))
		} else if layout.ReadOnly() {
			f.add("layout: %s is for reading only", layout)
		}
	}
	duration := func(key string, text *string) *time.Duration {
		if text == nil {
			return nil
		}
		d, err := time.ParseDuration(*text)
		if err != nil || d < 0 {
			f.add("%s is %q: it is a duration such as 200ms or 60s", key, *text)
		}
		return &d
	}
	ahead, window := duration(createKeys[1], aheadText), duration(createKeys[2], windowText)
	if len(f) > 0 {
		return problemf(badBody, "%s", f.problem().detail)
	}
	c, err := a.Configure(layout, ahead, window)
	if err != nil {
		return problemf(badBody, "%s", detailOf(err))
	}
	before, lookup := a.Lookup(ctx, name)
	info, err := a.Create(ctx, name, c)
	var mismatch *grant.MismatchError
	switch {
	case errors.As(err, &mismatch):
		return problemf(different, "%s: what a sequencer is never changes; choose another name, or take it as it is", detailOf(err))
	case err != nil:
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	status := http.StatusOK
	if lookup != nil || before.Incarnation != info.Incarnation {
		status = http.StatusCreated
	}
	return writeJSON(w, status, InJSON(info))
}

// attach and detach do so for all members.
func (h *Handler) attach(w http.ResponseWriter, r *http.Request) *problem {
	return h.act(w, r, func(ctx context.Context, a Administrator, name string) *problem {
		info, err := a.Attach(ctx, name)
		if errors.Is(err, grant.ErrNotFound) {
			return problemf(noSequencer, "there is no sequencer %s; PUT creates it", name)
		}
		if err != nil {
			return problemOf(err, h.limit, ctx.Err() != nil)
		}
		return writeJSON(w, http.StatusOK, InJSON(info))
	})
}

func (h *Handler) detach(w http.ResponseWriter, r *http.Request) *problem {
	return h.act(w, r, func(ctx context.Context, a Administrator, name string) *problem {
		return h.empty(ctx, w, r, a, name, a.Detach, grant.Detaching, grant.Detached)
	})
}

func (h *Handler) act(w http.ResponseWriter, r *http.Request, do func(context.Context, Administrator, string) *problem) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	a, name, p := h.named(r)
	if p != nil {
		return p
	}
	if hasBody(w, r) {
		return problemf(unexpectedBody, "this path reads no body")
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	return do(ctx, a, name)
}

// empty detaches or destroys. What is not done when the request's time is over is
// 202 if the store has the state that keeps windows from growing: the same request again
// says whether it is done.
func (h *Handler) empty(ctx context.Context, w http.ResponseWriter, r *http.Request, a Administrator, name string, do func(context.Context, string) (grant.Info, error), through, last grant.State) *problem {
	info, err := do(ctx, name)
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return problemf(noSequencer, "there is no sequencer %s", name)
	case err != nil && ctx.Err() != nil && r.Context().Err() == nil:
		later, cancel := context.WithTimeout(r.Context(), readyLimit)
		defer cancel()
		switch info, lookup := a.Lookup(later, name); {
		case lookup != nil:
			err = lookup
		case info.State == through || info.State == last:
			return writeJSON(w, http.StatusAccepted, InJSON(info))
		}
		// Nothing was begun: 202 would have the caller wait in vain.
		return problemOf(err, h.limit, true)
	case err != nil:
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, InJSON(info))
}

// members answers with the servers of the store, and those of their node numbers that
// whoever asks may see.
func (h *Handler) members(w http.ResponseWriter, r *http.Request) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	l, ok := h.backend.(Lister)
	if !ok {
		return writeJSON(w, http.StatusOK, map[string]any{"members": []members.Member{}})
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	all, err := l.Members(ctx)
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	if all == nil {
		all = []members.Member{}
	}
	for i := range all {
		all[i].Holds = slices.DeleteFunc(all[i].Holds, func(held members.Held) bool { return !h.mayRead(r, held.Sequencer) })
	}
	return writeJSON(w, http.StatusOK, map[string]any{"members": all})
}

// createKeys are those of the body that creates a sequencer.
var createKeys = [...]string{"layout", "max_ahead", "window"}

// readCreate reads a JSON object with texts for some of createKeys, each once at most, and
// no others. null is as if the key were left out. Errors are in words for a client.
func readCreate(text []byte) (values [len(createKeys)]*string, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	none := errors.New("the body is no JSON")
	switch begin, err := d.Token(); {
	case err != nil:
		return values, none
	case begin != json.Delim('{'):
		return values, errors.New("the body is no JSON object")
	}
	given := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		key, ok := token.(string)
		if err != nil || !ok {
			return values, none
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return values, none
		}
		n := slices.Index(createKeys[:], key)
		switch {
		case n < 0:
			return values, fmt.Errorf("the body has the key %s, and there are %s", inspect.Quote(key), list(createKeys[:]))
		case given[key]:
			return values, fmt.Errorf("the body has %s twice", key)
		case string(value) != "null" && json.Unmarshal(value, &values[n]) != nil:
			return values, fmt.Errorf("%s is %s, and no text in quotes", key, inspect.Quote(string(value)))
		}
		given[key] = true
	}
	if _, err := d.Token(); err != nil {
		return values, none
	}
	if _, err := d.Token(); err != io.EOF {
		return values, errors.New("the body goes on after the JSON")
	}
	return values, nil
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, v any) *problem {
	body, err := json.Marshal(v)
	if err != nil {
		return &problem{kind: internal, detail: "the server's log says what happened", cause: err}
	}
	body = append(body, '\n')
	w.Header()["Content-Type"] = contentTypes[mediaJSON]
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
	return nil
}

// ask asks the store, unless it has been silent for too long.
func (c *Cluster) ask(ctx context.Context, n need, call func(context.Context) error) error {
	return ofStore(ctx, c.patience.during(ctx, n, call))
}

// askInfo is ask for what a sequencer is.
func (c *Cluster) askInfo(ctx context.Context, n need, call func(context.Context) (grant.Info, error)) (info grant.Info, err error) {
	err = c.ask(ctx, n, func(ctx context.Context) (err error) {
		info, err = call(ctx)
		return err
	})
	return info, err
}

// Sequencers of a Cluster are those of its store; so are all that follow.
func (c *Cluster) Sequencers(ctx context.Context, yield func(string, grant.Info, error) bool) error {
	return c.ask(ctx, need{}, func(ctx context.Context) error { return grant.Sequencers(ctx, c.c.Store, yield) })
}

// Lookup returns one sequencer.
func (c *Cluster) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{}, func(ctx context.Context) (grant.Info, error) { return grant.Lookup(ctx, c.c.Store, name) })
}

// Configure is the configuration of one that is to be created.
func (c *Cluster) Configure(layout firn.Layout, maxAhead, window *time.Duration) (grant.Config, error) {
	return grant.UsualConfig(c.c.Store, layout, maxAhead, window)
}

// Create creates a sequencer, or creates it again.
func (c *Cluster) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // which is none of the store's
	}
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) {
		return grant.Create(ctx, c.c.Store, name, config, time.Now())
	})
}

// Attach makes a detached sequencer usable again.
func (c *Cluster) Attach(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.AttachAll(ctx, c.c.Store, name) })
}

// Detach has all members give their numbers back.
func (c *Cluster) Detach(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.DetachAll(ctx, c.c.Store, name, nil) })
}

// Destroy has all members give their numbers back, for good.
func (c *Cluster) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return c.askInfo(ctx, need{writes: true}, func(ctx context.Context) (grant.Info, error) { return grant.Destroy(ctx, c.c.Store, name, nil) })
}

// Nodes calls yield for each node number of a sequencer.
func (c *Cluster) Nodes(ctx context.Context, name string, yield func(grant.NodeInfo, error) bool) error {
	return c.ask(ctx, need{}, func(ctx context.Context) error { return grant.Nodes(ctx, c.c.Store, name, yield) })
}

// Members are the servers that have announced themselves in the store.
func (c *Cluster) Members(ctx context.Context) (all []members.Member, err error) {
	err = c.ask(ctx, need{}, func(ctx context.Context) (err error) {
		all, err = members.List(ctx, c.c.Store, time.Now())
		return err
	})
	return all, err
}
