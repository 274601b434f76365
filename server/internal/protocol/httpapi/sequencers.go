package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// An adminCall is a request to a StoreAdmin: about the named sequencer, or
// about all if the path has no name.
type adminCall struct {
	*service.StoreAdmin
	w    http.ResponseWriter
	r    *http.Request
	name string
}

// admin returns a route's function that checks the name, and refuses a change
// that a page of another origin sent. Changes are logged with the client, which
// serveRoute has accepted. The context has the limit of a request.
func admin(serve func(*Handler, context.Context, *adminCall) *service.Problem) func(*Handler, http.ResponseWriter,
	*http.Request, *auth.Credentials) *service.Problem {
	return func(h *Handler, w http.ResponseWriter, r *http.Request, creds *auth.Credentials) *service.Problem {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && isCrossSite(r) {
			return service.Problemf(service.CrossSite, "a page of another origin cannot change sequencers")
		}
		name, names := r.PathValue("name"), []string(nil)
		if r.Pattern != "/v1/sequencers" {
			names = []string{name}
		}
		a, p := h.front.Admin(creds, names...)
		if p != nil {
			return p
		}
		if r.Method == http.MethodPost && hasBody(w, r) {
			return service.Problemf(service.UnexpectedBody, "this path reads no body")
		}
		ctx, cancel := h.front.Limited(r.Context())
		defer cancel()
		return serve(h, ctx, &adminCall{a, w, r, name})
	}
}

// answer answers with a sequencer, or with a problem if err is not nil.
func (a *adminCall) answer(ctx context.Context, h *Handler, status int, info grant.Info, err error) *service.Problem {
	if err != nil {
		return service.AdminProblem(a.name, err, h.front.RequestTimeout, ctx.Err() != nil)
	}
	return writeJSON(a.w, status, NewSequencerJSON(info))
}

// listSequencers answers with the sequencers that the caller may see.
func (h *Handler) listSequencers(ctx context.Context, a *adminCall) *service.Problem {
	all := []SequencerJSON{}
	err := a.Sequencers(ctx, func(info grant.Info, err error) bool {
		if err != nil {
			all = append(all, SequencerJSON{Name: info.Name, Error: textfmt.Message(err)})
		} else {
			all = append(all, NewSequencerJSON(info))
		}
		return true
	})
	if err != nil {
		return service.ProblemOf(err, h.front.RequestTimeout, ctx.Err() != nil)
	}
	return writeJSON(a.w, http.StatusOK, map[string]any{"sequencers": all})
}

// serveSequencer returns, creates or destroys one sequencer.
func (h *Handler) serveSequencer(ctx context.Context, a *adminCall) *service.Problem {
	switch a.r.Method {
	case http.MethodPut:
		return h.create(ctx, a)
	case http.MethodDelete:
		return change(service.DestroyWithin)(h, ctx, a)
	}
	info, err := a.Lookup(ctx, a.name)
	type node struct {
		Node    uint64 `json:"node"`
		Held    bool   `json:"held"`
		Host    string `json:"host"`
		Until   string `json:"until"`
		Written string `json:"written"`
	}
	nodes, damaged := []node{}, []uint64{}
	if err == nil {
		err = a.Nodes(ctx, a.name, func(n grant.NodeInfo, err error) bool {
			if err != nil {
				damaged = append(damaged, n.Node)
			} else {
				nodes = append(nodes, node{n.Node, n.Held, n.Host, textfmt.Stamp(n.Until), textfmt.Stamp(n.Written)})
			}
			return true
		})
	}
	if err != nil {
		return a.answer(ctx, h, 0, info, err)
	}
	return writeJSON(a.w, http.StatusOK, struct {
		SequencerJSON
		Nodes   []node   `json:"nodes"`
		Damaged []uint64 `json:"damaged,omitempty"`
	}{NewSequencerJSON(info), nodes, damaged})
}

// create creates a sequencer with the settings in the body.
func (h *Handler) create(ctx context.Context, a *adminCall) *service.Problem {
	body := new(service.Creation)
	d := json.NewDecoder(http.MaxBytesReader(a.w, a.r.Body, int64(h.front.Limits.Body)))
	d.DisallowUnknownFields()
	err := d.Decode(body)
	if err == nil {
		err = d.Decode(new(any)) // io.EOF: no more than the object
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return service.Problemf(service.BadBody, "the body is larger than %d bytes", h.front.Limits.Body)
	case err != io.EOF:
		return service.Problemf(service.BadBody, "the body must be a JSON object whose keys are layout, max_ahead, window "+
			`or prefix, each with a string: send an object such as {"layout":"default","max_ahead":"1s","window":"60s"}; `+
			"each key is optional")
	}
	c, err := body.Config(a.StoreAdmin)
	if err != nil {
		return a.answer(ctx, h, 0, grant.Info{}, err)
	}
	before, lookup := a.Lookup(ctx, a.name)
	info, err := a.Create(ctx, a.name, c)
	status := http.StatusOK
	if lookup != nil || before.Incarnation != info.Incarnation {
		status = http.StatusCreated
	}
	return a.answer(ctx, h, status, info, err)
}

// change returns what changes a sequencer for all members. If that is not done
// within the request's limit, it answers 202.
func change(do service.LimitedChange) func(*Handler, context.Context, *adminCall) *service.Problem {
	return func(h *Handler, ctx context.Context, a *adminCall) *service.Problem {
		info, pending, err := do(a.r.Context(), a.StoreAdmin, a.name, h.front.RequestTimeout)
		status := http.StatusOK
		if pending {
			status = http.StatusAccepted
		}
		return a.answer(ctx, h, status, info, err)
	}
}
