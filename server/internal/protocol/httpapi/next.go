package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// A nextRequest is a parsed request for IDs.
type nextRequest struct {
	count     int
	format    form.Form // if hasFormat
	hasFormat bool
	runs      bool
	media     media
}

// parseNext parses a request for up to most IDs.
func parseNext(r *http.Request, most int) (q nextRequest, p *problem) {
	values, errs := readParams(r.URL.RawQuery, "count", "format", "runs")
	count, format, runs := values[0], values[1], values[2]

	q.count = 1
	if count != "" {
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil || n < 1 || n > uint64(most) {
			errs.add("count is %s: it must be a number from 1 to %d", textfmt.Quote(count), most)
		}
		q.count = int(n)
	}
	if q.hasFormat = format != ""; q.hasFormat {
		var err error
		if q.format, err = form.Parse(format); err != nil {
			errs.add("%s", textfmt.Message(err))
		}
	}
	if q.runs = runs == "true"; !q.runs && runs != "" && runs != "false" {
		errs.add("runs is %s: it must be true or false", textfmt.Quote(runs))
	}
	if q.runs && q.hasFormat && (q.format.Is(firn.Raw) || q.format.IsVeiled()) {
		errs.add("runs=true cannot be combined with format=%s, which does not form runs", q.format.String())
	}
	if p := errs.problem(); p != nil {
		return q, p
	}

	offers := allMedia
	switch {
	case q.runs:
		offers = []media{mediaJSON}
	case q.hasFormat && q.format.Is(firn.Raw):
		offers = []media{mediaOctets}
	case q.hasFormat:
		offers = []media{mediaJSON, mediaText}
	}
	accept := r.Header["Accept"]
	m, ok := negotiate(accept, offers)
	if !ok {
		names := make([]string, len(offers))
		for i, m := range offers {
			names[i] = m.String()
		}
		return q, problemf(service.NotAcceptable, "Accept is %s: IDs are available as %s", textfmt.Quote(accept[0]), list(names))
	}
	q.media = m
	return q, nil
}

// nonceHeader is returned with the answer, so that a client can tell that the
// answer is its own. A proxy may replace X-Request-Id, but not this header,
// which it does not know.
const nonceHeader = "Firn-Nonce"

// next answers with new IDs.
func (h *Handler) next(w http.ResponseWriter, r *http.Request, creds *auth.Credentials) *problem {
	if isCrossSite(r) {
		return problemf(service.CrossSite, "a page of another origin cannot take IDs: send the request from that page's server")
	}
	if nonce := r.Header[nonceHeader]; len(nonce) == 1 && requestid.Valid(nonce[0]) {
		w.Header()[nonceHeader] = nonce
	}
	name := r.PathValue("name")
	if err := service.CheckName(name); err != nil {
		return problemf(service.BadName, "%v", err)
	}
	q, p := parseNext(r, h.config.Limits.Count)
	if p != nil {
		return p
	}
	if ranges := r.Header["Range"]; ranges != nil {
		return problemf(service.UnexpectedRange, "Range is %s: every request makes new IDs, so an answer cannot be continued: discard what has arrived, and send the request without Range", textfmt.Quote(ranges[0]))
	}
	if hasBody(w, r) {
		return problemf(service.UnexpectedBody, "this path reads no body: write parameters into the URL, as in %s?count=3", r.URL.EscapedPath())
	}

	isForwarded := r.Header[service.ForwardedHeader] != nil
	if isForwarded {
		r = r.WithContext(service.WithForwarded(r.Context()))
	}

	b, err := h.take.Take(r.Context(), name, creds, q.count, service.Terms{Fit: q.fit, Typed: q.hasFormat && q.format.IsTyped(), MustExist: !h.mayCreate(r, creds), Wait: func() context.Context {
		r = withRequestID(w, r) // IDs that are available need no request ID
		return r.Context()
	}})
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if err != nil {
		return &problem{Problem: service.ProblemOf(err, h.config.Limit, false)}
	}
	if isForwarded && h.config.Owner != nil {
		// If the node ID was lost meanwhile, the owner does not match the IDs, and
		// the other server notices.
		w.Header().Set(service.OwnerHeader, h.config.Owner(name))
	}
	q.answer(w, &b)
	return nil
}

// answer answers with the IDs of a batch.
func (q *nextRequest) answer(w http.ResponseWriter, b *service.Batch) {
	if q.media == mediaOctets {
		writePacked(w, b)
		return
	}
	a := newIDWriter(w, q)
	defer a.close()
	if q.runs {
		runs := b.Runs()
		if len(runs) > fewItems {
			total := 0
			for _, r := range runs {
				total += len(appendRun(a.scratch(), r, &q.format))
			}
			a.setLength(len(runs), total)
		}
		for _, r := range runs {
			if !a.add(appendRun(a.next(), r, &q.format)) {
				break
			}
		}
		return
	}
	if q.count > fewItems {
		a.setLength(q.count, textLength(a, b, &q.format))
	}
	for id := range b.All {
		if !a.add(id.Append(a.next(), &q.format)) {
			break
		}
	}
}

// textLength returns how many bytes the texts of all IDs have together.
func textLength(a *idWriter, b *service.Batch, f *form.Form) int {
	if b.Layout().Ordered() {
		// A greater number is never shorter as text, so those between have this
		// length too.
		first := len(b.At(0).Append(a.scratch(), f))
		if len(b.At(b.Len()-1).Append(a.scratch(), f)) == first {
			return b.Len() * first
		}
	}
	total := 0
	for id := range b.All {
		total += len(id.Append(a.scratch(), f))
	}
	return total
}

// fit completes the request for its sequencer, or returns a problem if it does
// not fit. It runs before any ID is taken.
func (q *nextRequest) fit(s *service.Sequencer) error {
	l := &s.Layout
	switch {
	case q.media == mediaOctets:
		q.format = form.Of(firn.Raw)
	case !q.hasFormat:
		q.format = form.Of(l.Format())
	}
	if err := s.Complete(&q.format); err != nil {
		return problemf(service.BadParameter, "%s", textfmt.Message(err))
	}
	if q.runs && !l.HasRuns() {
		return problemf(service.NoRuns, "layout %s has random bits or a step of 2^64 or more, so its IDs do not form runs: leave out runs=true", l)
	}
	return nil
}

// hasBody reports whether a request has a body. That must be an error: a client
// that sends count=3 in the body would otherwise get one ID and not know why.
func hasBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	// The length is unknown (chunked), so read the first byte. A body that cannot
	// be read, or does not arrive (see closeAfterBody), is not an empty one
	// either.
	if n, err := r.Body.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return true
	}
	// Undo all effects of the check. Until net/http sets the deadline of the next
	// request, the limit of this one applies.
	delete(w.Header(), "Connection")
	http.NewResponseController(w).SetReadDeadline(time.Time{})
	return false
}

// closeAfterBody closes the connection after the answer to a request with a
// body. Otherwise net/http would read the body before it answers, for as long
// as the client takes to send it. What net/http reads after the answer, and
// what hasBody reads, must arrive within Limits.Read.
func (h *Handler) closeAfterBody(w http.ResponseWriter) {
	w.Header()["Connection"] = headerClose
	// A ResponseWriter without a connection has no deadlines, and needs none.
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.config.Limits.Read))
}
