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
	"github.com/firnid/firn/client"
)

// Options configure the IDs that a Handler makes. A nil pointer and zero fields
// mean the defaults given for each field.
type Options struct {
	// Layout is the layout of all sequencers; the zero Layout means
	// firn.Default.
	Layout firn.Layout

	// Node is the Handler's node ID. Those of one test need different ones.
	Node uint64
}

// A Handler answers requests for IDs of any name; each name has its own
// generator. It is safe for concurrent use by multiple goroutines and must be
// made by NewHandler.
type Handler struct {
	options    Options
	closed     chan struct{}
	close      sync.Once
	generators sync.Map // of generator by name

	requests, delay atomic.Int64 // delay is a time.Duration
	taken           atomic.Uint64

	mu    sync.Mutex // guards the fields below
	fail  int        // how many requests fail with kind
	kind  client.Kind
	token string
}

// A generator makes n IDs, and returns the answer with them: runs as JSON, or
// packed bytes.
type generator func(ctx context.Context, n int, runs bool) ([]byte, error)

// NewHandler returns a Handler. A test passes it to httptest.NewServer.
func NewHandler(o *Options) (*Handler, error) {
	h := &Handler{options: *cmp.Or(o, new(Options)), closed: make(chan struct{})}
	if h.options.Layout.IsZero() {
		h.options.Layout = firn.Default()
	}
	if _, err := h.newGenerator(); err != nil {
		return nil, fmt.Errorf("clienttest: %w", err)
	}
	return h, nil
}

// FailNext makes the next n requests fail with a problem of this kind. The
// answer has the status of the kind and, if servers name a time to retry,
// "Retry-After: 1". The requests take no IDs. A kind that is not one of a
// server's has the status 500.
func (h *Handler) FailNext(n int, kind client.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail, h.kind = n, kind
}

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

// Taken returns the number of IDs made.
func (h *Handler) Taken() uint64 { return h.taken.Load() }

// Close ends the delays of requests, so that a server can be stopped. It may be
// called more than once.
func (h *Handler) Close() { h.close.Do(func() { close(h.closed) }) }

// ServeHTTP answers requests to /v1/sequencers/NAME/next with the parameters
// that package client sends: runs are JSON with hexadecimal IDs, and other IDs
// are packed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if nonce := r.Header["Firn-Nonce"]; nonce != nil {
		w.Header()["Firn-Nonce"] = nonce
	}
	h.requests.Add(1)
	h.mu.Lock()
	token, kind, fails := h.token, h.kind, h.fail > 0
	if fails {
		h.fail--
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
	if fails {
		fail(w, kind, "the test wants this request to fail")
		return
	}
	if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
		fail(w, client.KindUnauthorized, "the token is missing or wrong")
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/v1/sequencers/")
	if ok {
		name, ok = strings.CutSuffix(name, "/next")
	}
	if !ok {
		fail(w, "not-found", "there is nothing at "+strconv.Quote(r.URL.Path))
		return
	}
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:"
	if name == "" || strings.Trim(name, allowed) != "" || strings.ContainsRune("._-:", rune(name[0])) {
		fail(w, client.KindBadName, strconv.Quote(name)+" is not the name of a sequencer")
		return
	}
	h.next(w, r, name)
}

// next answers a request for IDs of a name.
func (h *Handler) next(w http.ResponseWriter, r *http.Request, name string) {
	query := r.URL.Query()
	text, runs := query.Get("count"), query.Get("runs") == "true"
	count, err := strconv.Atoi(text)
	switch {
	case err != nil || count < 1:
		fail(w, client.KindBadParameter, fmt.Sprintf("count is %q: use a number from 1 to 100000", text))
		return
	case count > 100_000:
		fail(w, client.KindBatchTooLarge, fmt.Sprintf("count is %d: use a number from 1 to 100000", count))
		return
	case runs && !h.options.Layout.HasRuns():
		fail(w, "no-runs", "IDs of this layout have no runs: omit runs=true")
		return
	}
	body, err := h.generator(name)(r.Context(), count, runs)
	switch {
	case err == nil:
	case errors.Is(err, firn.ErrBatchTooLarge):
		fail(w, client.KindBatchTooLarge, err.Error())
		return
	case errors.Is(err, firn.ErrTimeOver):
		fail(w, client.KindTimeOver, err.Error())
		return
	default:
		fail(w, client.KindBusy, err.Error())
		return
	}
	h.taken.Add(uint64(count))
	media := "application/octet-stream"
	if runs {
		media = "application/json"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
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
	// Begins now. A StaticGrant would begin MaxAhead later, but no earlier
	// process had the node ID.
	grant := firn.Grant{Node: o.Node, From: time.Now()}
	if o.Layout.Bits() == 128 {
		g, err := firn.NewGenerator128(o.Layout, grant, nil)
		return generatorOf(g, firn.Format.Append128), err
	}
	g, err := firn.NewGenerator(o.Layout, grant, nil)
	return generatorOf(g, firn.Format.Append), err
}

// generatorOf returns a source as a generator, with the function that writes
// its IDs.
func generatorOf[I firn.AnyID](source firn.SourceOf[I], appendID func(firn.Format, []byte, I) []byte) generator {
	return func(ctx context.Context, n int, runs bool) ([]byte, error) {
		b, err := source.NextBatch(ctx, n)
		if err != nil || !runs {
			return b.AppendRaw(nil, 0, b.Len()), err
		}
		body := []byte(`{"runs":[`)
		for i, r := range b.Runs() {
			if i > 0 {
				body = append(body, ',')
			}
			body = appendID(firn.Hex, append(body, `{"first":"`...), r.First)
			body = fmt.Appendf(body, `","step":"%d","count":%d}`, r.Step, r.Count)
		}
		return append(body, "]}\n"...), nil
	}
}

// An answer is how servers answer with a kind of problem.
type answer struct {
	status     int
	retryAfter int // in seconds, the default of servers; 0 if they send none
}

// fail answers with a problem of this kind.
func fail(w http.ResponseWriter, kind client.Kind, detail string) {
	a, ok := answers[kind]
	if !ok {
		a.status = http.StatusInternalServerError
	}
	body, _ := json.Marshal(map[string]any{ // marshaling strings and a number cannot fail
		"type": "urn:firn:problem:" + kind, "title": http.StatusText(a.status), "status": a.status, "detail": detail,
	})
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(a.retryAfter))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}
