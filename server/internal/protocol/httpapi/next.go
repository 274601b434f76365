package httpapi

import (
	"context"
	"io"
	"net/http"
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
	service.Request
	media media
}

// parseNext parses a request for IDs.
func (h *Handler) parseNext(r *http.Request) (q nextRequest, p *service.Problem) {
	values, errs := readParams(r.URL.RawQuery, "count", "format", "runs")
	count, format, runs := values[0], values[1], values[2]

	q.Count = 1
	if count != "" {
		if q.Count, p = h.front.ParseCount([]byte(count)); p != nil {
			errs.add("%s", p.Detail)
		}
	}
	hasFormat := format != ""
	if hasFormat {
		var err error
		if q.Format, err = form.Parse(format); err != nil {
			errs.add("%s", textfmt.Message(err))
		}
	}
	if q.Runs = runs == "true"; !q.Runs && runs != "" && runs != "false" {
		errs.add("runs is %s: it must be true or false", textfmt.Quote(runs))
	}
	if q.Runs && (q.Format.Is(firn.Raw) || q.Format.IsVeiled()) {
		errs.add("runs=true cannot be combined with format=%s, which does not form runs", q.Format)
	}
	if len(errs) == 1 && p != nil {
		return q, p
	}
	if p := errs.problem(); p != nil {
		return q, p
	}

	offers := allMedia
	switch {
	case q.Runs:
		offers = []media{mediaJSON}
	case q.Format.Is(firn.Raw):
		offers = []media{mediaOctets}
	case hasFormat:
		offers = []media{mediaJSON, mediaText}
	}
	accept := r.Header["Accept"]
	m, ok := negotiate(accept, offers)
	if !ok {
		names := make([]string, len(offers))
		for i, m := range offers {
			names[i] = m.String()
		}
		return q, service.Problemf(service.NotAcceptable, "Accept is %s: IDs are available as %s",
			textfmt.Quote(accept[0]), joinNames(names))
	}
	if q.media = m; m == mediaOctets {
		q.Format = form.Of(firn.Raw)
	}
	return q, nil
}

// nonceHeader is returned with the answer, so that a client can tell that the
// answer is its own. A proxy may replace X-Request-Id, but not this header,
// which it does not know.
const nonceHeader = "Firn-Nonce"

// next answers with new IDs.
func (h *Handler) next(w http.ResponseWriter, r *http.Request, creds *auth.Credentials) *service.Problem {
	if isCrossSite(r) {
		return service.Problemf(service.CrossSite, "a page of another origin cannot take IDs: send the request from that "+
			"page's server")
	}
	if nonce := r.Header[nonceHeader]; len(nonce) == 1 && requestid.Valid(nonce[0]) {
		w.Header()[nonceHeader] = nonce
	}
	q, p := h.parseNext(r)
	if p != nil {
		return p
	}
	if ranges := r.Header["Range"]; ranges != nil {
		return service.Problemf(service.UnexpectedRange, "Range is %s: every request makes new IDs, so an answer cannot be "+
			"continued: discard what has arrived, and send the request without Range", textfmt.Quote(ranges[0]))
	}
	if hasBody(w, r) {
		return service.Problemf(service.UnexpectedBody, "this path reads no body: write parameters into the URL, as in "+
			"%s?count=3", r.URL.EscapedPath())
	}

	isForwarded := r.Header[service.ForwardedHeader] != nil
	if isForwarded {
		r = r.WithContext(service.WithForwarded(r.Context()))
	}

	name := r.PathValue("name")
	q.MustExist = !h.mayCreate(r, creds)
	ctx := r.Context()
	q.Wait = func() context.Context { return identify(ctx, w) } // IDs that are available need no request ID
	if h.front.Issued != nil {
		ctx = identify(ctx, w)
	}
	var b service.Batch
	if p := h.front.Take(ctx, creds, name, &q.Request, &b); p != nil {
		return p
	}
	if isForwarded && h.config.Owner != nil {
		// If the node ID was lost meanwhile, the owner does not match the IDs,
		// and the other server notices.
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
	if q.Runs {
		runs := b.Runs()
		if len(runs) > fewItems {
			total := 0
			for _, r := range runs {
				total += len(appendRun(a.scratch(), r, &q.Resolved))
			}
			a.setLength(len(runs), total)
		}
		for _, r := range runs {
			if !a.add(appendRun(a.next(), r, &q.Resolved)) {
				break
			}
		}
		return
	}
	if q.Count > fewItems {
		a.setLength(q.Count, textLength(a, b, &q.Resolved))
	}
	for id := range b.All {
		if !a.add(id.Append(a.next(), &q.Resolved)) {
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

// hasBody reports whether a request has a body. That must be an error: a client
// that sends count=3 in the body would otherwise get one ID and not know why.
func hasBody(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	// The length is unknown (chunked), so read the first byte. A body that
	// cannot be read, or does not arrive (see closeAfterBody), is not an empty
	// one either.
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
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.front.Limits.Read))
}
