package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// ErrClosed means that the Sequencer, or its Client, was closed.
var ErrClosed = errors.New("client: sequencer is closed")

// An Error is what a server says of a request that it did not do. Kind tells
// errors apart; docs/http.md lists the kinds.
//
// It matches errors of package firn where they say the same: ErrExhausted
// (busy), ErrGrantOver (no-grant), ErrTimeOver (time-over) and ErrBatchTooLarge
// (batch-too-large).
type Error struct {
	Sequencer  string
	Server     string        // as in Config.Servers
	Status     int           // of HTTP
	Kind       string        // "busy", "detached", …: the problem's type without urn:firn:problem:, or a type of another kind as it is, or "" if there was none
	Detail     string        // what is wrong, and what would be right; the first words of the answer where there was no problem in it
	Hint       string        // what the user of this package can do, or ""
	RetryAfter time.Duration // when the server wants to be asked again, or 0
}

func (e *Error) Error() string {
	what := e.Kind
	if what == "" {
		what = strings.ToLower(http.StatusText(e.Status))
	}
	text := fmt.Sprintf("client: %s at %s: %d", e.Sequencer, e.Server, e.Status)
	if what != "" {
		text += " " + what
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is reports whether target is the error of package firn that says the same.
func (e *Error) Is(target error) bool {
	is := problemKinds[e.Kind].is
	return is != nil && target == is
}

// again reports whether the same server may answer the same request later.
func (e *Error) again() bool {
	switch e.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusGatewayTimeout: // a proxy without its server
		return true
	}
	return false
}

// final reports whether no server would do the request.
func (e *Error) final() bool { return e.Status >= 400 && e.Status < 500 && !e.again() }

// ofServer reports whether the server as a whole does not work, where most
// problems are those of one sequencer.
func (e *Error) ofServer() bool {
	k, known := problemKinds[e.Kind]
	return !known || k.ofServer
}

// A problemKind is what this package knows of a kind of problem; kinds.go has
// all.
type problemKind struct {
	hint     string // what a user of this package can do, or ""
	ofServer bool   // it concerns the server as a whole, and not one sequencer
	is       error  // the error of package firn that says the same, or nil
}

// hintOf is the hint for a kind or, without one, a status.
func hintOf(kind string, status int) string {
	if kind != "" {
		return problemKinds[kind].hint
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "see whether Config.Token is right"
	case http.StatusNotFound:
		return "see whether Config.Servers names a Firn server, with the right path"
	}
	if status >= 300 && status < 400 {
		return "redirects are not followed, as a token would go with them: put the address that it leads to into Config.Servers"
	}
	return ""
}

// An AnswerError says that a server has answered with something else than IDs
// that were asked for. None of them is used.
type AnswerError struct {
	Sequencer string
	Server    string // as in Config.Servers
	Reason    string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("client: %s at %s: the answer cannot be used: %s", e.Sequencer, e.Server, e.Reason)
}

// A giveUpError is that of a batch that no server gave: the last failure of
// each.
type giveUpError struct {
	sequencer string
	errs      []error
}

func (e *giveUpError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = strings.TrimPrefix(err.Error(), "client: ")
	}
	return fmt.Sprintf("client: no server gives IDs of %s: %s", e.sequencer, strings.Join(texts, "; "))
}

func (e *giveUpError) Unwrap() []error { return e.errs }
