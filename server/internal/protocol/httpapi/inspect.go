package httpapi

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/service"
)

// inspect answers with the likeliest reading of an ID, and with others.
func (h *Handler) inspect(w http.ResponseWriter, r *http.Request, creds *auth.Credentials) *service.Problem {
	values, errs := readParams(r.URL.RawQuery, "layout", "from", "sequencer")
	o := readOptions(values[0], values[1], &errs)
	if p := errs.problem(); p != nil {
		return p
	}
	if p := h.front.PrepareInspect(r.Context(), creds, values[2], r.PathValue("id"), &o); p != nil {
		return p
	}
	if _, ok := negotiate(r.Header["Accept"], []media{mediaJSON}); !ok {
		return service.Problemf(service.NotAcceptable, "Accept is %s: readings are available as %s",
			textfmt.Quote(r.Header["Accept"][0]), mediaJSON)
	}
	result, err := inspect.Read(r.PathValue("id"), o)
	if err != nil {
		return service.Problemf(service.BadID, "%s", textfmt.Message(err))
	}
	return writeJSON(w, http.StatusOK, result.JSON())
}

// inspectColumn answers with the report of a column of IDs, one per line of the
// body.
func (h *Handler) inspectColumn(w http.ResponseWriter, r *http.Request, _ *auth.Credentials) *service.Problem {
	values, errs := readParams(r.URL.RawQuery, "layout", "from")
	o := readOptions(values[0], values[1], &errs)
	if p := errs.problem(); p != nil {
		return p
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(h.front.Limits.Body)))
	if err != nil {
		return service.Problemf(service.BadBody, "the body is larger than %d bytes: firn inspect --summary reads files of "+
			"any size", h.front.Limits.Body)
	}
	summary := inspect.NewSummary(o, time.Now())
	bad, missing := 0, 0
	for line := range strings.Lines(string(body)) {
		switch text := strings.TrimSpace(line); {
		case summary.Add(text) == nil:
		case form.IsMissing(text):
			missing++
		default:
			bad++
		}
	}
	report := summary.Report()
	return writeJSON(w, http.StatusOK, report.JSON(bad, missing))
}

// readOptions reads the parameters layout and from, which are "" if not given.
func readOptions(layout, from string, errs *paramErrors) (o inspect.Options) {
	var err error
	if layout != "" {
		if o.Layout, err = firn.ParseLayout(layout); err != nil {
			errs.add("%s", textfmt.Message(err))
		}
	}
	if from != "" {
		if o.From, err = form.ParseInput(from); err != nil {
			errs.add("%s", textfmt.Message(err))
		}
	}
	return o
}
