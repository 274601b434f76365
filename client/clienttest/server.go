package clienttest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
)

// Options configure the IDs that a Handler makes. A nil pointer and zero fields
// mean the defaults given for each field.
type Options struct {
	// Layout is the layout of all sequencers; the zero Layout means
	// firn.Default.
	Layout firn.Layout

	// Node is the Handler's node ID. Those of one test need different ones.
	Node uint64

	// Generator configures the generators; nil means that IDs may be ahead of
	// the clock by the layout's default.
	Generator *firn.Options
}

// A Handler answers requests for IDs of any name; each name has its own
// generator. It is safe for concurrent use by multiple goroutines and must be
// made by NewHandler.
type Handler struct {
	options    Options
	closed     chan struct{}
	close      sync.Once
	generators sync.Map // of generator by name

	requests, drop, delay atomic.Int64 // delay is a time.Duration
	taken                 atomic.Uint64

	mu           sync.Mutex // guards the fields below
	fail, status int
	token        string
}

// A generator makes batches of IDs of either width.
type generator func(ctx context.Context, n int) (batch, error)

// A batch writes its IDs.
type batch struct {
	appendIDs  func(b []byte, f firn.Format, before, after string) []byte
	appendRuns func(b []byte, f firn.Format) []byte // as JSON, with a comma after each
}

// NewHandler returns a Handler. A test passes it to httptest.NewServer.
func NewHandler(o *Options) (*Handler, error) {
	h := &Handler{options: *cmp.Or(o, new(Options)), closed: make(chan struct{})}
	if h.options.Layout.IsZero() {
		h.options.Layout = firn.Default()
	}
	h.options.Generator = cmp.Or(h.options.Generator, &firn.Options{MaxAhead: h.options.Layout.MaxAhead()})
	if _, err := h.newGenerator(); err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	return h, nil
}

// FailNext makes the next n requests fail with this status and a problem, and
// with "Retry-After: 1" if the status is 503. They take no IDs.
func (h *Handler) FailNext(n, status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail, h.status = n, status
}

// DropNext makes the next n requests that would succeed take their IDs, and
// then closes the connection in the middle of the answer: the IDs are lost.
func (h *Handler) DropNext(n int) { h.drop.Store(int64(n)) }

// Delay makes every request from now on wait for d first.
func (h *Handler) Delay(d time.Duration) { h.delay.Store(int64(d)) }

// RequireToken makes requests without this bearer token fail with status 401;
// "" removes the requirement.
func (h *Handler) RequireToken(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.token = token
}

// Requests returns the number of requests received.
func (h *Handler) Requests() int { return int(h.requests.Load()) }

// Taken returns the number of IDs made, including those in lost answers.
func (h *Handler) Taken() uint64 { return h.taken.Load() }

// Close ends the delays of requests, so that a server can be stopped. It may be
// called more than once.
func (h *Handler) Close() { h.close.Do(func() { close(h.closed) }) }

// ServeHTTP answers POST and GET of /v1/sequencers/NAME/next.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if nonce := r.Header["Firn-Nonce"]; nonce != nil {
		w.Header()["Firn-Nonce"] = nonce
	}
	h.requests.Add(1)
	h.mu.Lock()
	token, status := h.token, 0
	if h.fail > 0 {
		h.fail--
		status = h.status
	}
	h.mu.Unlock()

	if delay := time.Duration(h.delay.Load()); delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		case <-h.closed:
		}
	}
	if status != 0 {
		problem(w, status, "injected", "the test wants this request to fail")
		return
	}
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		problem(w, http.StatusUnauthorized, "unauthorized", "the token is missing or wrong")
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/v1/sequencers/")
	if ok {
		name, ok = strings.CutSuffix(name, "/next")
	}
	if !ok {
		problem(w, http.StatusNotFound, "not-found", "there is nothing at "+strconv.Quote(r.URL.Path))
		return
	}
	if r.Method != http.MethodPost && r.Method != http.MethodGet {
		problem(w, http.StatusMethodNotAllowed, "method-not-allowed", "use POST or GET")
		return
	}
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:") != "" || strings.ContainsRune("._-:", rune(name[0])) {
		problem(w, http.StatusBadRequest, "bad-name", strconv.Quote(name)+" is not the name of a sequencer")
		return
	}
	h.next(w, r, name)
}

// next answers a request for IDs of a name.
func (h *Handler) next(w http.ResponseWriter, r *http.Request, name string) {
	bad := func(format string, a ...any) {
		problem(w, http.StatusBadRequest, "bad-parameter", fmt.Sprintf(format, a...))
	}
	count, format, runs := 1, h.options.Layout.Format(), false
	accept := r.Header.Get("Accept")
	for key, values := range r.URL.Query() {
		var err error
		switch value := values[0]; {
		case len(values) > 1:
			bad("%s is given twice", key)
			return
		case key == "count":
			if count, err = strconv.Atoi(value); err != nil || count < 1 || count > 100_000 {
				bad("count is %q: use a number from 1 to 100000", value)
				return
			}
		case key == "format":
			if format, err = firn.ParseFormat(value); err == nil {
				err = format.Fits(h.options.Layout.Bits())
			}
			if err != nil {
				bad("%v", err)
				return
			}
		case key == "runs" && (value == "true" || value == "false"):
			runs = value == "true"
		default:
			bad("%s=%s is not a parameter here", key, value)
			return
		}
	}
	if runs && !h.options.Layout.HasRuns() {
		problem(w, http.StatusBadRequest, "no-runs", "IDs of this layout have no runs: omit runs=true")
		return
	}

	b, err := h.generator(name)(r.Context(), count)
	switch {
	case err == nil:
	case errors.Is(err, firn.ErrBatchTooLarge):
		problem(w, http.StatusBadRequest, "batch-too-large", err.Error())
		return
	case errors.Is(err, firn.ErrTimeOver):
		problem(w, http.StatusInternalServerError, "time-over", err.Error())
		return
	default:
		problem(w, http.StatusServiceUnavailable, "busy", err.Error())
		return
	}
	h.taken.Add(uint64(count))
	drop := h.drop.Load() > 0 && h.drop.Add(-1) >= 0

	var body []byte
	media := "application/json"
	switch {
	case runs:
		body = b.appendRuns([]byte(`{"runs":[`), format)
		body = append(body[:len(body)-1], "]}\n"...)
	case accept == "application/octet-stream" || format == firn.Raw:
		media = "application/octet-stream"
		body = b.appendIDs(nil, firn.Raw, "", "")
	case strings.HasPrefix(accept, "text/plain"):
		media = "text/plain; charset=utf-8"
		body = b.appendIDs(nil, format, "", "\n")
	default:
		body = b.appendIDs([]byte(`{"ids":[`), format, `"`, `",`)
		body = append(body[:len(body)-1], "]}\n"...)
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if drop {
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // the way to close the connection in net/http
	}
	_, _ = w.Write(body) // a failure concerns only the client
}

// generator finds or makes the generator of a sequencer.
func (h *Handler) generator(name string) generator {
	g, ok := h.generators.Load(name)
	if !ok {
		// NewHandler has already tested everything that can fail.
		made, _ := h.newGenerator()
		g, _ = h.generators.LoadOrStore(name, made)
	}
	return g.(generator)
}

// newGenerator makes the generator of a sequencer.
func (h *Handler) newGenerator() (generator, error) {
	o := h.options
	now := time.Now
	if o.Generator.Now != nil {
		now = o.Generator.Now
	}
	// Begins now. A StaticGrant would begin MaxAhead later, but no earlier
	// process had the node ID.
	grant := firn.Grant{Node: o.Node, From: now()}
	if o.Layout.Bits() == 128 {
		g, err := firn.NewGenerator128(o.Layout, grant, o.Generator)
		return generatorOf(g, firn.Format.Append128), err
	}
	g, err := firn.NewGenerator(o.Layout, grant, o.Generator)
	return generatorOf(g, firn.Format.Append), err
}

// generatorOf returns a source as a generator, with the function that writes
// its IDs.
func generatorOf[I firn.AnyID[I]](source firn.SourceOf[I], appendID func(firn.Format, []byte, I) []byte) generator {
	return func(ctx context.Context, n int) (batch, error) {
		made, err := source.NextBatch(ctx, n)
		return batch{
			appendIDs: func(b []byte, f firn.Format, before, after string) []byte {
				for id := range made.All() {
					b = append(appendID(f, append(b, before...), id), after...)
				}
				return b
			},
			appendRuns: func(b []byte, f firn.Format) []byte {
				for _, r := range made.Runs() {
					b = appendID(f, append(b, `{"first":"`...), r.First)
					b = fmt.Appendf(b, `","step":"%d","count":%d},`, r.Step, r.Count)
				}
				return b
			},
		}, err
	}
}

// problem answers with a problem of this kind.
func problem(w http.ResponseWriter, status int, kind, detail string) {
	body, _ := json.Marshal(map[string]any{ // marshaling strings and a number cannot fail
		"type": "urn:firn:problem:" + kind, "title": http.StatusText(status), "status": status, "detail": detail,
	})
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
