package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/veil"
)

// inspectParams are the parameters of inspect.
var inspectParams = []string{"layout", "from", "sequencer"}

// inspect answers with the likeliest reading of an ID, and with others.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request) *problem {
	values, faults := readParams(r.URL.RawQuery, inspectParams)
	var o inspect.Options
	var err error
	if layout := values[0]; layout.given {
		if o.Layout, err = firn.ParseLayout(layout.value); err != nil {
			faults.add("%s", service.Detail(err))
		}
	}
	if from := values[1]; from.given {
		if o.From, err = inspect.ParseEncoding(from.value); err != nil {
			faults.add("%s", service.Detail(err))
		}
	}
	if p := faults.problem(); p != nil {
		return p
	}
	if name := values[2]; name.given {
		if p := h.unveil(r, name.value, &o); p != nil {
			return p
		}
	}
	if _, ok := negotiate(r.Header["Accept"], []media{mediaJSON}); !ok {
		return problemf(service.NotAcceptable, "Accept is %s: readings are available as %s", inspect.Quote(r.Header["Accept"][0]), mediaJSON)
	}
	result, err := inspect.Read(r.PathValue("id"), o)
	if err != nil {
		return problemf(service.BadID, "%s", service.Detail(err))
	}
	w.Header()["Content-Type"] = contentTypes[mediaJSON]
	body := append(result.AppendJSON(nil), '\n')
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.Write(body)
	return nil
}

// unveil sets the layout of a sequencer and, if the request has a veiled ID, its
// key. The caller must be allowed to take IDs of the sequencer, or to see it.
func (h *Handler) unveil(r *http.Request, name string, o *inspect.Options) *problem {
	if err := service.CheckName(name); err != nil {
		return problemf(service.BadName, "%v", err)
	}
	if p := h.check(r, auth.See, name); p != nil && h.check(r, auth.Take, name) != nil {
		return p
	}
	if q := h.backend.Opened(name); q != nil {
		o.Layout = q.Layout
	} else if a := h.backend.Admin(); a != nil {
		ctx, cancel := context.WithTimeout(r.Context(), h.limit)
		defer cancel()
		info, err := a.Lookup(ctx, name)
		if errors.Is(err, grant.ErrNotFound) {
			return problemf(service.NoSequencer, "sequencer %s not found", name)
		}
		if err != nil {
			return problemOf(err, h.limit, ctx.Err() != nil)
		}
		o.Layout = info.Config.Layout
	} else {
		return problemf(service.NoSequencer, "sequencer %s is not in use", name)
	}
	if _, looks := veil.Number(r.PathValue("id")); !looks && !o.From.IsVeiled() {
		return nil
	}
	if len(h.veil) == 0 {
		return problemf(service.BadParameter, "this server has no keys for veiled IDs: start it with --veil-keys")
	}
	v, err := form.NewVeil(h.veil, name, o.Layout)
	if err != nil {
		return problemf(service.BadParameter, "%s", service.Detail(err))
	}
	o.From = inspect.Veiled(v)
	return nil
}
