package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/request"
)

// A kind is a sort of problem: what a client can tell problems apart by. Its
// type on the wire is urn:firn:problem: and the name. docs/http.md lists all.
type kind struct {
	name   string
	status int
	title  string
}

// The kinds. Names are a contract; statuses follow these rules:
//
//   - 400 and other 4xx: the same request can never be answered here.
//   - 503: it can be answered later. Retry-After says when, where that is known.
//   - 500 and 507: somebody has to change something at the server first.
var (
	badParameter     = kind{"bad-parameter", http.StatusBadRequest, "A parameter is wrong"}
	badName          = kind{"bad-name", http.StatusBadRequest, "This is not the name of a sequencer"}
	badID            = kind{"bad-id", http.StatusBadRequest, "This is not an ID"}
	unexpectedBody   = kind{"unexpected-body", http.StatusBadRequest, "The request has a body"}
	unexpectedRange  = kind{"unexpected-range", http.StatusBadRequest, "The request asks for a part of an answer"}
	noRuns           = kind{"no-runs", http.StatusBadRequest, "IDs of this layout have no runs"}
	batchTooLarge    = kind{"batch-too-large", http.StatusBadRequest, "So many IDs take longer than a request may"}
	crossSite        = kind{"cross-site", http.StatusForbidden, "The request comes from another web site"}
	badBody          = kind{"bad-body", http.StatusBadRequest, "The body is wrong"}
	unauthorized     = kind{"unauthorized", http.StatusUnauthorized, "There is no token, or not a known one"}
	forbidden        = kind{"forbidden", http.StatusForbidden, "The token does not allow this"}
	noSequencer      = kind{"no-sequencer", http.StatusNotFound, "There is no such sequencer"}
	noStore          = kind{"no-store", http.StatusConflict, "The server has no store"}
	different        = kind{"different", http.StatusConflict, "The sequencer exists and is different"}
	notFound         = kind{"not-found", http.StatusNotFound, "There is nothing here"}
	methodNotAllowed = kind{"method-not-allowed", http.StatusMethodNotAllowed, "This path has no such method"}
	notAcceptable    = kind{"not-acceptable", http.StatusNotAcceptable, "There is no answer in an accepted form"}
	foreignHost      = kind{"foreign-host", http.StatusMisdirectedRequest, "The Host is not this machine's own"}
	badConfig        = kind{"bad-config", http.StatusInternalServerError, "The server's configuration is wrong"}
	internal         = kind{"internal", http.StatusInternalServerError, "The server has failed"}
	timeOver         = kind{"time-over", http.StatusInternalServerError, "The layout has no time left"}
	busy             = kind{"busy", http.StatusServiceUnavailable, "No ID was free in time"}
	cancelled        = kind{"cancelled", http.StatusServiceUnavailable, "The request was given up"}
	clockWrong       = kind{"clock", http.StatusServiceUnavailable, "The server's clock is wrong"}
	clockAhead       = kind{"clock-ahead", http.StatusServiceUnavailable, "The server's clock seems to be ahead"}
	noGrant          = kind{"no-grant", http.StatusServiceUnavailable, "The server holds no node number now"}
	exhausted        = kind{"nodes-exhausted", http.StatusServiceUnavailable, "All node numbers are held by others"}
	notYet           = kind{"not-yet", http.StatusServiceUnavailable, "No node ID may be used yet"}
	unavailable      = kind{"store-unavailable", http.StatusServiceUnavailable, "The store does not answer"}
	rolledBack       = kind{"store-rolled-back", http.StatusServiceUnavailable, "The store went back to an earlier state"}
	detached         = kind{"detached", http.StatusConflict, "The sequencer is detached"}
	destroyed        = kind{"destroyed", http.StatusGone, "The sequencer is destroyed"}
	recreated        = kind{"recreated", http.StatusServiceUnavailable, "The sequencer was created again with another layout"}
	badRecord        = kind{"bad-record", http.StatusInternalServerError, "The store's record of the sequencer cannot be used"}
	draining         = kind{"draining", http.StatusServiceUnavailable, "The server is about to stop"}
	tooManyNames     = kind{"too-many-names", http.StatusInsufficientStorage, "There are too many sequencers"}
)

// ErrTooManyNames is what a Backend's error matches that has no room for
// another name.
var ErrTooManyNames = errors.New("too many sequencers")

// A problem is the answer to a request that was not done. Its detail says what
// is wrong and what would be right.
type problem struct {
	kind
	detail string
	retry  time.Duration // of Retry-After, where it is more than 0
	allow  string        // of Allow
	cause  error         // what to log, where it is the server that has failed
}

// problemf is a problem with a formatted detail.
func problemf(k kind, format string, a ...any) *problem {
	return &problem{kind: k, detail: fmt.Sprintf(format, a...)}
}

// problemOf is the one table from the errors of a Backend and its sources to
// problems. Limit is what the request was given, and late whether it has passed.
func problemOf(err error, limit time.Duration, late bool) *problem {
	p := &problem{kind: internal, detail: detailOf(err)}
	var (
		wait  *firn.WaitError
		clock *firn.ClockError
		none  *grant.ExhaustedError
	)
	switch {
	case errors.Is(err, context.Canceled):
		p.kind = cancelled

	// Before the deadline that may have ended the wait for it. A node ID that another
	// server holds may be given back at any moment; one that was fenced is free when its
	// time has come, and not before.
	case errors.As(err, &none) && none.Ahead:
		p.kind, p.retry = notYet, max(time.Until(none.Free), time.Second)
	case errors.Is(err, grant.ErrNodesExhausted):
		p.kind, p.retry = exhausted, time.Second
	case errors.Is(err, grant.ErrRolledBack):
		p.kind, p.cause = rolledBack, err
	case errors.Is(err, grant.ErrDetached):
		p.kind = detached
	case errors.Is(err, grant.ErrDestroyed):
		p.kind = destroyed
	case errors.Is(err, grant.ErrClockBehind):
		p.kind, p.cause = clockWrong, err
	case errors.Is(err, grant.ErrClockAhead):
		p.kind, p.cause = clockAhead, err
		if ahead := (*grant.ClockAheadError)(nil); errors.As(err, &ahead) && ahead.Comparing {
			p.retry = time.Second
		}
	case errors.Is(err, grant.ErrDamaged), errors.Is(err, grant.ErrNewerVersion), errors.Is(err, grant.ErrNotFound):
		p.kind, p.cause = badRecord, err
	case errors.Is(err, sequencer.ErrUnavailable):
		// The log has what the store said; that may name hosts.
		p.kind, p.retry, p.cause = unavailable, time.Second, err
		p.detail = "node numbers are kept in a store that could not be reached or read; the server's log says more"
		switch silent := (*silentError)(nil); {
		case errors.As(err, &silent):
			p.detail = fmt.Sprintf("node numbers are kept in a store that has not answered for %v; the server keeps trying, and its log says more", silent.silent.Round(time.Second))
		case errors.Is(err, context.DeadlineExceeded):
			p.detail = "node numbers are kept in a store that did not answer in time; the server's log says more"
		}
	case errors.Is(err, grant.ErrMismatch):
		// The backend has forgotten it, and opens it as it is now.
		p.kind, p.retry = recreated, time.Second
	case errors.Is(err, sequencer.ErrClosed):
		p.kind = draining

	case errors.Is(err, firn.ErrBatchTooLarge):
		p.kind = batchTooLarge
		p.detail += fmt.Sprintf(": it must be done in %v; ask for fewer IDs at a time", limit)

	// Every ID that was waited for is there a moment later, so the least that
	// Retry-After can say is right where nothing better is known.
	case errors.As(err, &wait):
		p.kind, p.retry = busy, wait.Wait
	case errors.As(err, &clock):
		p.kind, p.retry = clockWrong, clock.Wait
	case errors.Is(err, firn.ErrExhausted), errors.Is(err, context.DeadlineExceeded):
		p.kind, p.retry = busy, time.Second
	case errors.Is(err, firn.ErrGrantOver), errors.Is(err, firn.ErrSealed):
		p.kind, p.retry = noGrant, time.Second

	case errors.Is(err, firn.ErrTimeOver):
		p.kind = timeOver
	case errors.Is(err, ErrTooManyNames):
		p.kind = tooManyNames
	case errors.Is(err, ErrNoSequencer):
		p.kind = noSequencer
	case errors.Is(err, ErrTemplate):
		p.kind, p.cause = badConfig, err
	default:
		p.detail, p.cause = "the server's log says what happened", err
	}
	if late && p.retry > 0 {
		p.detail = fmt.Sprintf("the limit of %v for a request has passed: %s", limit, p.detail)
	}
	if p.retry > maxRetry {
		p.retry = 0
	}
	return p
}

// A Fault is an error of a Backend or its sources as other protocols tell it.
type Fault struct {
	Kind   string        // as in the type of a problem
	Status int           // of HTTP
	Detail string        // what is wrong, and what would be right
	Retry  time.Duration // when it may be otherwise; 0 where that is not known
	Cause  error         // what to log, where it is the server that has failed
}

// FaultOf tells what an error is. Limit is what the call was given, and late whether it
// has passed.
func FaultOf(err error, limit time.Duration, late bool) Fault {
	p := problemOf(err, limit, late)
	return Fault{p.name, p.status, p.detail, p.retry, p.cause}
}

// Level is that of a line about the Cause. A store that does not answer fails every request:
// there who watches the store says so, and not each of them.
func (f Fault) Level() slog.Level { return levelOf(f.Kind) }

func levelOf(kind string) slog.Level {
	if kind == unavailable.name {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// maxRetry is the longest Retry-After. A wait beyond it does not end by itself:
// the clock is years before the epoch, for instance.
const maxRetry = time.Hour

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retry > 0 {
		seconds := (p.retry + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if p.kind == unauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="firn"`)
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // people read this too, and it is never HTML
	enc.Encode(struct {      // strings and a number always do
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Instance  string `json:"instance"`
		RequestID string `json:"request_id,omitempty"`
	}{"urn:firn:problem:" + p.name, p.title, p.status, p.detail, r.URL.EscapedPath(), request.ID(r.Context())})
	if body.Len() > 2048 { // net/http counts what is shorter
		h.Set("Content-Length", strconv.Itoa(body.Len()))
	}
	w.WriteHeader(p.status)
	w.Write(body.Bytes())
}

// detailOf is an error as a detail, which needs no prefix of a package.
func detailOf(err error) string {
	text := err.Error()
	for _, prefix := range [...]string{"firn: ", "grant: ", "sequencer: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}
