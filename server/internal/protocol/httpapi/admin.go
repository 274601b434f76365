package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/config"
	"github.com/firnid/firn/server/internal/fleet/members"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// admin returns the Administrator for a request, or a problem if it changes
// something and a page of another origin sent it. Changes are logged with the
// client, which check has accepted.
func (h *Handler) admin(r *http.Request) (service.Administrator, *problem) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && isCrossSite(r) {
		return nil, problemf(service.CrossSite, "a page of another origin cannot change sequencers")
	}
	a := h.backend.Admin()
	if a == nil {
		return nil, problemf(service.NoStore, "this server runs with a static node ID and without a store: start it with --store to administer sequencers")
	}
	c := h.credentials(r)
	if h.auth != nil && r.Method != http.MethodGet {
		_ = h.auth.Allow(c, auth.Anything, "") // finds the client's name
	}
	return service.By(a, service.ClientOf(c), h.log), nil
}

// named is admin for a path with a sequencer name.
func (h *Handler) named(r *http.Request) (service.Administrator, string, *problem) {
	name := r.PathValue("name")
	if err := service.CheckName(name); err != nil {
		return nil, "", problemf(service.BadName, "%v", err)
	}
	a, p := h.admin(r)
	return a, name, p
}

// sequencers answers with the sequencers that the caller may see.
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
	sees := h.sees(r)
	all := []textfmt.SequencerJSON{}
	err := a.Sequencers(ctx, func(name string, info grant.Info, err error) bool {
		if !sees(name) {
			return true
		}
		if err != nil {
			all = append(all, textfmt.SequencerJSON{Name: name, Error: service.Detail(err)})
		} else {
			all = append(all, textfmt.InJSON(info))
		}
		return true
	})
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, map[string]any{"sequencers": all})
}

// sequencer returns, creates or destroys one sequencer.
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
		return problemf(service.NoSequencer, "sequencer %s not found; PUT creates it", name)
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
		textfmt.SequencerJSON
		Nodes []node `json:"nodes"`
	}{textfmt.InJSON(info), []node{}}
	err = a.Nodes(ctx, name, func(n grant.NodeInfo, err error) bool {
		if err == nil {
			answer.Nodes = append(answer.Nodes, node{n.Node, n.Held, n.Host, textfmt.Stamp(n.Until), textfmt.Stamp(n.Wall)})
		}
		return true
	})
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// create creates a sequencer with the settings in the body.
func (h *Handler) create(ctx context.Context, w http.ResponseWriter, r *http.Request, a service.Administrator, name string) *problem {
	text, err := io.ReadAll(io.LimitReader(r.Body, int64(h.limits.Body)+1))
	switch {
	case err != nil:
		return problemf(service.BadBody, "the body cannot be read")
	case len(text) > h.limits.Body:
		return problemf(service.BadBody, "the body is larger than %d bytes", h.limits.Body)
	}
	body := new(createBody)
	if len(text) > 0 {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if d.Decode(&body) != nil || body == nil || d.Decode(new(any)) != io.EOF {
			return problemf(service.BadBody, `the body must be a JSON object whose keys are layout, max_ahead, window, prefix or low_bits, each with a string: send an object such as {"layout":"default","max_ahead":"1s","window":"60s"}; each key is optional`)
		}
	}
	layout := firn.Default()
	var f faults
	if body.Layout != nil {
		if layout, err = firn.ParseLayout(*body.Layout); err != nil {
			f.add("layout: %s", service.Detail(err))
		} else if layout.ReadOnly() {
			f.add("layout: %s is only for reading IDs", layout)
		}
	}
	duration := func(key string, text *string) *time.Duration {
		if text == nil {
			return nil
		}
		d, err := time.ParseDuration(*text)
		if err != nil || d < 0 {
			f.add("%s is %q: it must be a duration such as 200ms or 60s", key, *text)
		}
		return &d
	}
	ahead, window := duration("max_ahead", body.MaxAhead), duration("window", body.Window)
	low := 0
	if body.LowBits != nil {
		if low, err = config.ParseLowBits(*body.LowBits); err != nil {
			f.add("low_bits: %v", err)
		}
	}
	if len(f) > 0 {
		return problemf(service.BadBody, "%s", f.problem().Detail)
	}
	c, err := a.Configure(layout, ahead, window)
	c.LowBits = low
	if body.Prefix != nil {
		c.Prefix = *body.Prefix
	}
	if err = cmp.Or(err, c.Check()); err != nil {
		return problemf(service.BadBody, "%s", service.Detail(err))
	}
	before, lookup := a.Lookup(ctx, name)
	info, err := a.Create(ctx, name, c)
	switch {
	case errors.Is(err, grant.ErrMismatch):
		return problemf(service.Different, "%s: the settings of a sequencer never change; use the existing one, or choose another name, whose IDs can equal those of this one", service.Detail(err))
	case errors.Is(err, firn.ErrTimeOver):
		return problemf(service.BadBody, "%s", service.Detail(err))
	case err != nil:
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	status := http.StatusOK
	if lookup != nil || before.Incarnation != info.Incarnation {
		status = http.StatusCreated
	}
	return writeJSON(w, status, textfmt.InJSON(info))
}

// attach and detach act on all members.
func (h *Handler) attach(w http.ResponseWriter, r *http.Request) *problem {
	return h.act(w, r, func(ctx context.Context, a service.Administrator, name string) *problem {
		info, err := a.Attach(ctx, name)
		if errors.Is(err, grant.ErrNotFound) {
			return problemf(service.NoSequencer, "sequencer %s not found; PUT creates it", name)
		}
		if err != nil {
			return problemOf(err, h.limit, ctx.Err() != nil)
		}
		return writeJSON(w, http.StatusOK, textfmt.InJSON(info))
	})
}

func (h *Handler) detach(w http.ResponseWriter, r *http.Request) *problem {
	return h.act(w, r, func(ctx context.Context, a service.Administrator, name string) *problem {
		return h.empty(ctx, w, r, a, name, a.Detach, grant.Detaching, grant.Detached)
	})
}

func (h *Handler) act(w http.ResponseWriter, r *http.Request, do func(context.Context, service.Administrator, string) *problem) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	a, name, p := h.named(r)
	if p != nil {
		return p
	}
	if hasBody(w, r) {
		return problemf(service.UnexpectedBody, "this path reads no body")
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	return do(ctx, a, name)
}

// empty detaches or destroys a sequencer. If that is not done within the
// request's limit, it answers 202, provided the store has the state that keeps
// windows from growing. Repeating the request shows whether it is done.
func (h *Handler) empty(ctx context.Context, w http.ResponseWriter, r *http.Request, a service.Administrator, name string, do func(context.Context, string) (grant.Info, error), through, last grant.State) *problem {
	info, err := do(ctx, name)
	switch {
	case errors.Is(err, grant.ErrNotFound):
		return problemf(service.NoSequencer, "sequencer %s not found", name)
	case err != nil && ctx.Err() != nil && r.Context().Err() == nil:
		later, cancel := context.WithTimeout(r.Context(), service.ReadyLimit)
		defer cancel()
		switch info, lookup := a.Lookup(later, name); {
		case lookup != nil:
			err = lookup
		case info.State == through || info.State == last:
			return writeJSON(w, http.StatusAccepted, textfmt.InJSON(info))
		}
		// Nothing was started: after 202 the caller would wait in vain.
		return problemOf(err, h.limit, true)
	case err != nil:
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	return writeJSON(w, http.StatusOK, textfmt.InJSON(info))
}

// members answers with the servers of the store. Of their node IDs and counts
// of IDs it shows those that the caller may see.
func (h *Handler) members(w http.ResponseWriter, r *http.Request) *problem {
	if _, f := readParams(r.URL.RawQuery, nil); f != nil {
		return f.problem()
	}
	a := h.backend.Admin()
	if a == nil {
		return writeJSON(w, http.StatusOK, map[string]any{"members": []members.Member{}})
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	all, err := a.Members(ctx)
	if err != nil {
		return problemOf(err, h.limit, ctx.Err() != nil)
	}
	if all == nil {
		all = []members.Member{}
	}
	if h.check(r, auth.SeeAll, "") != nil {
		sees := h.sees(r)
		for i := range all {
			all[i] = all[i].For(sees)
		}
	}
	return writeJSON(w, http.StatusOK, map[string]any{"members": all})
}

// A createBody is the body that creates a sequencer.
type createBody struct {
	Layout   *string `json:"layout"`
	MaxAhead *string `json:"max_ahead"`
	Window   *string `json:"window"`
	Prefix   *string `json:"prefix"`
	LowBits  *string `json:"low_bits"`
}

// writeJSON answers with a value as JSON.
func writeJSON(w http.ResponseWriter, status int, v any) *problem {
	body, err := json.Marshal(v)
	if err != nil {
		return &problem{Fault: service.Fault{Detail: "see the server's log", Kind: service.Internal, Cause: err}}
	}
	body = append(body, '\n')
	w.Header()["Content-Type"] = contentTypes[mediaJSON]
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	w.Write(body)
	return nil
}
