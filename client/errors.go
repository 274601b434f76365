package client

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firnid/firn"
)

// An Error is a server's answer to a request that it did not fulfill. Kind
// identifies the error.
//
// An Error matches the error of another package with the same meaning, which
// the list of kinds names. So a program that checks the errors of a sequencer
// of package sequencer can check those of a client alike.
type Error struct {
	Sequencer string
	Server    string // as in Config.Servers
	Status    int    // HTTP status; over RESP, the one of the Kind

	// Kind is the problem's type without urn:firn:problem:, a type of another
	// system unchanged, or "" if there was no type.
	Kind Kind

	// Detail is what is wrong and what would be right. If the answer is not a
	// problem, it is how the answer begins.
	Detail string

	Hint       string        // what the user of this package can do, or ""
	RetryAfter time.Duration // when the server asks to retry, or 0
}

func (e *Error) Error() string {
	what := cmp.Or(string(e.Kind), strings.ToLower(http.StatusText(e.Status)))
	text := fmt.Sprintf("client: %s: %d", nameAt(e.Sequencer, e.Server), e.Status)
	if what != "" {
		text += " " + what
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Is reports whether target is matched by the error of another package with the
// same meaning.
func (e *Error) Is(target error) bool { return errors.Is(problemKinds[e.Kind].is, target) }

// isTemporary reports whether the same server may fulfill the same request
// later.
func (e *Error) isTemporary() bool {
	return slices.Contains([]int{
		http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusRequestTimeout,
		http.StatusBadGateway, http.StatusGatewayTimeout, // from a proxy that cannot reach its server
	}, e.Status)
}

// ofRequest reports whether the request is wrong, so that probably no server
// fulfills it.
func (e *Error) ofRequest() bool {
	return e.Status >= 400 && e.Status < 500 && !e.isTemporary() && !e.ofServer()
}

// ofServer reports whether the server as a whole does not work; most problems
// concern one sequencer. Those without a kind, or with that of another system,
// do not come from a server of Firn.
func (e *Error) ofServer() bool {
	return e.Kind == "" || strings.Contains(string(e.Kind), ":") || problemKinds[e.Kind].ofServer
}

// isOutage reports whether the server does not work for a while, as one that
// does not answer. Any other problem is one that the server has found.
func (e *Error) isOutage() bool {
	return errors.Is(e, firn.ErrUnavailable) || e.isTemporary() && e.ofServer()
}

// A Kind is a kind of problem. The constants are the kinds that a request for
// IDs can have. Those of other requests, which docs/http.md lists, occur only
// if something between this program and the server changes requests.
type Kind string

// A problemKind describes a kind of problem; kinds.go has all of them.
type problemKind struct {
	status   int    // of HTTP
	hint     string // what a user of this package can do, or ""
	ofServer bool   // it concerns the server as a whole, not one sequencer
	is       error  // of another package with the same meaning, or nil
}

// hintOf returns the hint for a kind or, if it has none, for a status.
func hintOf(kind Kind, status int) string {
	if kind != "" {
		return problemKinds[kind].hint
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check Config.Token"
	case http.StatusNotFound:
		return "check that Config.Servers names a Firn server, with the right path"
	}
	if status >= 300 && status < 400 {
		return "redirects are not followed, because a token would be sent along: put the target address into Config.Servers"
	}
	return ""
}

// An answerError reports that a server has returned something other than the
// requested IDs. None of them is used.
type answerError struct{ sequencer, server, reason string }

func (e *answerError) Error() string {
	return fmt.Sprintf("client: %s: the answer cannot be used: %s", nameAt(e.sequencer, e.server), e.reason)
}

// A giveUpError is the error of a batch that no server returned: the last
// failure of each. It matches what these match, and firn.ErrUnavailable if none
// of them is a problem that a server has found.
type giveUpError struct {
	sequencer string
	cause     error // the context's; nil if Config.Patience ended the call
	errs      []error
}

func (e *giveUpError) Error() string {
	texts := make([]string, len(e.errs))
	for i, err := range e.errs {
		texts[i] = strings.TrimPrefix(err.Error(), "client: ")
	}
	what := "no server gives IDs of " + quote(e.sequencer)
	if e.cause != nil {
		what = quote(e.sequencer) + ": " + e.cause.Error()
	}
	return "client: " + what + ": " + strings.Join(texts, "; ")
}

func (e *giveUpError) Is(target error) bool {
	return target == firn.ErrUnavailable && !slices.ContainsFunc(e.errs, func(err error) bool {
		said, ok := errors.AsType[*Error](err)
		return ok && !said.isOutage()
	})
}

func (e *giveUpError) Unwrap() []error {
	if e.cause == nil {
		return e.errs
	}
	return append([]error{e.cause}, e.errs...)
}

// A tokenError is the error of a TokenSource.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "client: get a token: " + e.err.Error() }

func (e *tokenError) Unwrap() error { return e.err }

// isTokenError reports whether the token failed, so no server is asked.
func isTokenError(err error) bool { return errors.As(err, new(*tokenError)) }

// isTimeout reports whether a request took too long.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// isUntrusted reports whether the server's certificate is not trusted, or it
// does not speak TLS.
func isUntrusted(err error) bool {
	return errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) ||
		errors.Is(err, http.ErrSchemeMismatch)
}

// nameAt names a sequencer at a server. The name may be anything.
func nameAt(sequencer, server string) string { return quote(sequencer) + " at " + server }

// printable replaces what a terminal might interpret.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// quote quotes a text from a server, truncated to fit a log line.
func quote(text string) string { return fmt.Sprintf("%.80q", text) }
