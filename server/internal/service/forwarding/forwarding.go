// Package forwarding lets a server without a node ID answer with IDs of another
// server, from a list that its operator gives.
//
// The other server may turn out to use another store, or to be another program.
// So IDs are passed on only if this server's own store says that their maker
// owns their node ID, in a window that contains them. docs/protocol.md has the
// argument.
package forwarding

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/protocol/requestid"
	"github.com/firnid/firn/server/internal/service"
)

// Config configures Peers.
type Config struct {
	// URLs are the other servers: http://HOST:PORT or https://HOST:PORT.
	URLs []string

	// TLS is for https URLs; nil means the authorities that the system trusts.
	TLS *tls.Config

	// Token returns the token to send; nil or "" sends none. It is called for
	// every request.
	Token func() string

	// Trace adds the trace of a context to the header of a request; nil adds
	// none.
	Trace func(context.Context, http.Header)

	// Logger receives a warning when another server cannot help, and every
	// request at level debug; nil discards them.
	Logger *slog.Logger
}

// CheckURL returns an error if text cannot be one of Config.URLs.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !members.IsAddress(u.Host) ||
		strings.TrimSuffix(text, "/") != u.Scheme+"://"+u.Host {
		return errors.New("it must be a URL of a server, such as https://ids-1.example:3476")
	}
	return nil
}

// Peers are the other servers. They must be made by New, are safe for
// concurrent use, and end with Close.
type Peers struct {
	config  Config
	web     *http.Client
	peers   []*peer
	windows *windows
	next    atomic.Uint32 // the peer to begin with
	counts  [numResults]atomic.Uint64
	warned  atomic.Int64 // Unix nanoseconds of the last warning
	failed  atomic.Int64 // when a call failed, in Unix nanoseconds; 0 if one has succeeded since
}

var _ service.Peers = (*Peers)(nil)

// A peer is another server.
type peer struct {
	url    string
	paused atomic.Int64 // Unix nanoseconds until when it is not asked
}

const (
	peerLimit  = 3 * time.Second  // how long a server may take, besides making the IDs
	peerPause  = 3 * time.Second  // how long a server that did not answer is not asked, at least
	warnEvery  = 10 * time.Second // between warnings
	unreadyFor = 15 * time.Second // how long CanHelp is false after a failed call
)

// New makes the Peers of a server with the store of an administrator.
func New(admin *service.StoreAdmin, c Config) *Peers {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	p := &Peers{config: c, windows: newWindows(admin.Store(), admin.Lookup), web: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: c.TLS, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, to := range c.URLs {
		p.peers = append(p.peers, &peer{url: strings.TrimSuffix(to, "/")})
	}
	return p
}

// Close closes idle connections. Requests end with their contexts.
func (p *Peers) Close() { p.web.CloseIdleConnections() }

// CanHelp reports whether no call has failed lately.
func (p *Peers) CanHelp() bool {
	return time.Since(time.Unix(0, p.failed.Load())) > unreadyFor
}

// Forwards returns how often other servers were asked, by result.
func (p *Peers) Forwards() map[string]uint64 {
	all := make(map[string]uint64, numResults)
	for r := range numResults {
		all[results[r].name] = p.counts[r].Load()
	}
	return all
}

// Forwarded returns how many calls other servers have answered.
func (p *Peers) Forwarded() uint64 { return p.counts[gave].Load() }

// An Error says that no other server could help: why this server lacks a node
// ID, and what the others answered.
type Error struct {
	error
	Cause  error  // what is wrong with the answer of the last server
	Result string // of that, as in the metric firn_forwards_total
	Hint   string // what an operator can do; "" if nothing
}

// Unwrap returns why this server lacks a node ID.
func (e *Error) Unwrap() error { return e.error }

// Take asks the servers one by one, until one gives n IDs that may be passed
// on. If none does, the error is an *Error, or batch-too-large if one of them
// only gives fewer at a time.
func (p *Peers) Take(ctx context.Context, name string, l firn.Layout, n int, cause error) (b service.Batch, err error) {
	var refused Error
	var got [numResults]int
	first := int(p.next.Add(1)) % len(p.peers)
	for _, to := range slices.Concat(p.peers[first:], p.peers[:first]) {
		sent := time.Now()
		if sent.UnixNano() < to.paused.Load() {
			got[unreachable]++
			continue
		}
		packed, owner, err := p.ask(ctx, to, name, &l, n)
		if err == nil {
			var made origin
			if made, err = originOf(&l, packed); err == nil {
				err = p.windows.check(ctx, name, l, owner, made, sent, time.Now())
			}
		}
		if ctx.Err() != nil {
			return b, ctx.Err()
		}
		r := resultOf(err)
		p.counts[r].Add(1)
		p.config.Logger.DebugContext(ctx, "forwarded", "sequencer", name, "count", n, "to", to.url, "result",
			results[r].name, "took", time.Since(sent))
		if r == gave {
			p.failed.Store(0)
			return unpack(&l, packed, n)
		}
		if r == tooLarge {
			got[r]++
			continue // nothing is wrong with that server
		}
		if r == unreachable {
			to.paused.Store(time.Now().Add(max(peerPause, time.Since(sent))).UnixNano())
		}
		p.warn(name, to.url, r, err)
		p.failed.Store(time.Now().UnixNano())
		if errors.Is(err, errUnchecked) {
			return b, err
		}
		got[r]++
		refused.Cause, refused.Result, refused.Hint = err, results[r].name, results[r].hint
	}
	if got[tooLarge] > 0 {
		return b, service.Problemf(service.BatchTooLarge, "count is %d: this server has no node ID, and others give fewer "+
			"IDs at a time: ask for fewer", n)
	}
	var parts []string
	for r, n := range got {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, results[r].text))
		}
	}
	refused.error = fmt.Errorf("%w; other servers: %s", cause, strings.Join(parts, ", "))
	return b, &refused
}

// An answerError is an answer that has no IDs.
type answerError struct {
	status int
	kind   string // of problem; "" if the answer is not Firn's
	detail string
}

func (e *answerError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("status %d: %s %s", e.status, e.kind, e.detail))
}

// ask takes packed IDs from one server, with the owner that it names. It sends
// one request and does not repeat it.
func (p *Peers) ask(ctx context.Context, to *peer, name string, l *firn.Layout, n int) (packed []byte, owner string,
	err error) {
	limit := peerLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)/2) // so that another one can be asked
	}
	limit += time.Duration(2 * float64(n) / l.IDsPerSecond() * float64(time.Second))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/v1/sequencers/%s/next?format=raw&count=%d", to.url, name, n), http.NoBody)
	if err != nil {
		return nil, "", err
	}
	q.Header.Set(service.ForwardedHeader, "1")
	q.Header.Set("Accept", "application/octet-stream")
	if id := requestid.Of(ctx); id != "" {
		q.Header.Set(requestid.Header, id)
	}
	if p.config.Token != nil {
		if token := p.config.Token(); token != "" {
			q.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if p.config.Trace != nil {
		p.config.Trace(ctx, q.Header)
	}
	answer, err := p.web.Do(q)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	size := l.Bits() / 8
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
		kind, _, detail := service.ReadProblem(body)
		return nil, "", &answerError{answer.StatusCode, kind, detail}
	}
	packed, err = io.ReadAll(io.LimitReader(answer.Body, int64(n*size)+1))
	switch {
	case err != nil:
		return nil, "", err
	case answer.Header.Get("Content-Type") != "application/octet-stream" || len(packed) != n*size:
		return nil, "", reject("the answer is not %d IDs of %d bits", n, l.Bits())
	}
	return packed, answer.Header.Get(service.OwnerHeader), nil
}

// unpack returns n packed IDs of a layout as a batch.
func unpack(l *firn.Layout, packed []byte, n int) (service.Batch, error) {
	if l.Bits() == 128 {
		return service.BatchOf(l, runsOf(packed, 16, func(b []byte) firn.ID128 { return firn.ID128(b) }), n)
	}
	return service.BatchOf(l, runsOf(packed, 8, func(b []byte) firn.ID { return firn.ID(binary.BigEndian.Uint64(b)) }), n)
}

// runsOf returns packed IDs of a size as few runs.
func runsOf[I firn.AnyID](packed []byte, size int, read func([]byte) I) (runs []firn.RunOf[I]) {
	for at := 0; at < len(packed); at += size {
		id := packed[at : at+size]
		if k := len(runs) - 1; k >= 0 {
			if d := distance(packed[at-size:at], id); d > 0 && (runs[k].Count == 1 || runs[k].Step == d) {
				runs[k].Step = d
				runs[k].Count++
				continue
			}
		}
		runs = append(runs, firn.RunOf[I]{First: read(id), Step: 1, Count: 1})
	}
	return runs
}

// distance returns b - a for packed IDs that differ in the last 64 bits only,
// or 0 for others and if b is less.
func distance(a, b []byte) uint64 {
	at := len(a) - 8
	if !bytes.Equal(a[:at], b[:at]) {
		return 0
	}
	from := binary.BigEndian.Uint64(a[at:])
	return max(from, binary.BigEndian.Uint64(b[at:])) - from
}

// A result is the result of asking another server.
type result int

// The results.
const (
	gave         result = iota
	exhausted           // it has no node ID either
	unreachable         // it cannot be reached, does not answer in time, or is about to stop
	unauthorized        // it denies this server access
	tooLarge            // it gives fewer IDs at a time
	rejected            // its IDs may not be passed on
	failed              // it could not answer, or this server's store did not
	numResults
)

// results has for each result its name in metrics and logs, its text for
// clients, and what an operator can do.
var results = [numResults]struct{ name, text, hint string }{
	gave:        {name: "ok"},
	exhausted:   {name: "exhausted", text: "had no node ID either"},
	unreachable: {name: "unreachable", text: "did not answer"},
	unauthorized: {name: "unauthorized", text: "denied this server access",
		hint: "give this server a token with the role generate: --forward-token"},
	tooLarge: {name: "too-large"},
	rejected: {name: "rejected", text: "gave IDs that this server could not verify",
		hint: "the servers may use different stores, or their clocks may differ by more than 10 seconds"},
	failed: {name: "failed", text: "could not answer"},
}

// resultOf returns the result for an error of ask or of the check of its IDs.
func resultOf(err error) result {
	answer, answered := errors.AsType[*answerError](err)
	switch {
	case err == nil:
		return gave
	case errors.Is(err, errRejected):
		return rejected
	case errors.Is(err, errUnchecked):
		return failed
	case !answered:
		return unreachable
	}
	switch kind, _ := service.ParseKind(answer.kind); {
	case answer.kind == "":
		return unreachable // a proxy answered
	case kind == service.NodesExhausted, kind == service.NotYet:
		return exhausted
	case kind == service.Draining:
		return unreachable
	case kind == service.Unauthorized, kind == service.Forbidden:
		return unauthorized
	case kind == service.BatchTooLarge:
		return tooLarge
	}
	return failed
}

func (p *Peers) warn(name, url string, r result, err error) {
	now, last := time.Now().UnixNano(), p.warned.Load()
	if r == exhausted || now-last < int64(warnEvery) || !p.warned.CompareAndSwap(last, now) {
		return
	}
	with := []any{"sequencer", name, "server", url, "result", results[r].name, "error", err}
	if hint := results[r].hint; hint != "" {
		with = append(with, "hint", hint)
	}
	p.config.Logger.Warn("no node ID, and another server cannot help", with...)
}
