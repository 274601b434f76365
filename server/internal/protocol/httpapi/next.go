package httpapi

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// nextParams are the query parameters of next.
var nextParams = []string{"count", "format", "runs"}

// A nextRequest is a parsed request for IDs.
type nextRequest struct {
	count     int
	format    firn.Format // if hasFormat
	hasFormat bool
	runs      bool
	media     media
	taken     func() // called when the IDs were taken, before the answer; nil for nothing
}

// parseNext parses a request for up to most IDs.
func parseNext(r *http.Request, most int) (q nextRequest, p *problem) {
	values, faults := readParams(r.URL.RawQuery, nextParams)
	count, format, runs := values[0], values[1], values[2]

	q.count = 1
	if count.given {
		n, err := strconv.ParseUint(count.value, 10, 64)
		if err != nil || n < 1 || n > uint64(most) {
			faults.add("count is %s: it must be a number from 1 to %d", inspect.Quote(count.value), most)
		}
		q.count = int(n)
	}
	if format.given {
		q.hasFormat = true
		if err := q.format.UnmarshalText([]byte(format.value)); err != nil {
			faults.add("%s", service.Detail(err))
		}
	}
	if runs.given {
		if runs.value != "true" && runs.value != "false" {
			faults.add("runs is %s: it must be true or false", inspect.Quote(runs.value))
		}
		q.runs = runs.value == "true"
	}

	if q.runs && q.hasFormat && q.format == firn.Raw {
		faults.add("runs=true cannot be combined with format=raw: leave one of them out")
	}
	if p := faults.problem(); p != nil {
		return q, p
	}

	offers := allMedia
	switch {
	case q.runs:
		offers = []media{mediaJSON}
	case q.hasFormat && q.format == firn.Raw:
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
		with := "IDs are available as"
		switch {
		case q.runs:
			with = "with runs=true they are available as"
		case q.hasFormat:
			with = "with format=" + q.format.String() + " they are available as"
		}
		return q, problemf(service.NotAcceptable, "Accept is %s: %s %s", inspect.Quote(accept[0]), with, list(names))
	}
	q.media = m
	return q, nil
}

// nonceHeader is returned with the answer, so that a client can tell that the
// answer is its own. A proxy may replace X-Request-Id, but not this header,
// which it does not know.
const nonceHeader = "Firn-Nonce"

// next answers with new IDs.
func (h *Handler) next(w http.ResponseWriter, r *http.Request) *problem {
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
	q, p := parseNext(r, h.limits.Count)
	if p != nil {
		return p
	}
	if ranges := r.Header["Range"]; ranges != nil {
		return problemf(service.UnexpectedRange, "Range is %s: every request makes new IDs, so an answer cannot be continued: discard what has arrived, and send the request without Range", inspect.Quote(ranges[0]))
	}
	if hasBody(w, r) {
		return problemf(service.UnexpectedBody, "this path reads no body: write parameters into the URL, as in %s?count=3", r.URL.EscapedPath())
	}

	if r.Header[service.ForwardedHeader] != nil {
		r = r.WithContext(service.WithForwarded(r.Context()))
		if h.owner != nil {
			// If the node ID is lost meanwhile, the owner does not match the IDs, and
			// the other server notices.
			q.taken = func() { w.Header().Set(service.OwnerHeader, h.owner(name)) }
		}
	}

	// IDs that are available without waiting need neither a timer nor a request
	// ID.
	if s, ok := h.backend.Opened(name); ok && r.Context().Err() == nil {
		if p := q.fit(s.Layout); p != nil {
			return p
		}
		if q.answerNow(w, s) {
			return nil
		}
	}
	r = named(w, r)
	ctx, cancel := context.WithTimeout(r.Context(), h.limit)
	defer cancel()
	fail := func(err error) *problem { return problemOf(err, h.limit, ctx.Err() != nil) }
	s, err := service.Find(ctx, h.backend, name, h.auth, func() *auth.Credentials { return h.credentials(r) })
	if err != nil {
		return fail(err)
	}
	if p := q.fit(s.Layout); p != nil {
		return p
	}
	if err := q.answer(ctx, w, s); err != nil {
		return fail(err)
	}
	return nil
}

// answerNow takes IDs from a sequencer that are available without waiting and
// answers with them; otherwise it reports false and has answered nothing.
func (q *nextRequest) answerNow(w http.ResponseWriter, s service.Sequencer) bool {
	switch {
	case s.Try128 != nil:
		b, err := s.Try128.TryNextBatch(q.count)
		return answerWith(w, q, s.Layout, b, err, 16, q.format.Append128) == nil
	case s.Try != nil:
		b, err := s.Try.TryNextBatch(q.count)
		return answerWith(w, q, s.Layout, b, err, 8, q.format.Append) == nil
	}
	return false
}

// answer takes IDs from a sequencer and answers with them. After an error it
// has answered nothing.
func (q *nextRequest) answer(ctx context.Context, w http.ResponseWriter, s service.Sequencer) error {
	if s.Source128 != nil {
		b, err := s.Source128.NextBatch(ctx, q.count)
		return answerWith(w, q, s.Layout, b, err, 16, q.format.Append128)
	}
	b, err := s.Source.NextBatch(ctx, q.count)
	return answerWith(w, q, s.Layout, b, err, 8, q.format.Append)
}

// answerWith answers with the IDs of a batch: size is the number of bytes of a
// packed ID, and appendID writes its text.
func answerWith[I firn.AnyID[I]](w http.ResponseWriter, q *nextRequest, l firn.Layout, b firn.BatchOf[I], err error, size int, appendID func([]byte, I) []byte) error {
	if err = service.CheckLen(b.Len(), q.count, err); err != nil {
		return err
	}
	if q.taken != nil {
		q.taken()
	}
	if q.media == mediaOctets {
		writePacked(w, b, size)
		return nil
	}
	a := newAnswer(w, q)
	defer a.close()
	if q.runs {
		runs := b.Runs()
		if len(runs) > fewTexts {
			total := 0
			for _, r := range runs {
				total += len(appendRun(appendID(a.scratch(), r.First), r.Step, r.Count))
			}
			a.setLength(len(runs), total)
		}
		for _, r := range runs {
			if !a.end(appendRun(appendID(a.begin(), r.First), r.Step, r.Count)) {
				break
			}
		}
		return nil
	}
	if q.count > fewTexts {
		a.setLength(q.count, textLength(a, b, l, appendID))
	}
	for id := range b.All() {
		if !a.end(appendID(a.begin(), id)) {
			break
		}
	}
	return nil
}

// textLength returns how many bytes the texts of all IDs have together.
func textLength[I firn.AnyID[I]](a *answer, b firn.BatchOf[I], l firn.Layout, appendID func([]byte, I) []byte) int {
	if l.Ordered() {
		// A greater number is never shorter as text, so those between have this
		// length too.
		first := len(appendID(a.scratch(), idAt(b, 0)))
		if len(appendID(a.scratch(), idAt(b, b.Len()-1))) == first {
			return b.Len() * first
		}
	}
	total := 0
	for id := range b.All() {
		total += len(appendID(a.scratch(), id))
	}
	return total
}

// idAt returns the ID at an index of a batch.
func idAt[I firn.AnyID[I]](b firn.BatchOf[I], i int) (id I) {
	var buf [16]byte
	raw := b.AppendRaw(buf[:0], i, i+1)
	switch p := any(&id).(type) {
	case *firn.ID:
		*p = firn.ID(binary.BigEndian.Uint64(raw))
	case *firn.ID128:
		copy(p[:], raw)
	}
	return id
}

// fit completes the request for the layout of its sequencer, or returns a
// problem if it does not fit. It runs before any ID is taken.
func (q *nextRequest) fit(l firn.Layout) *problem {
	switch {
	case q.media == mediaOctets:
		q.format = firn.Raw
	case !q.hasFormat:
		q.format = l.Format()
	}
	if err := q.format.Fits(l.Bits()); err != nil {
		return problemf(service.BadParameter, "%s", service.Detail(err))
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
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.limits.Read))
}
