package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/firnid/firn"
)

// maxCount is the maximum number of IDs in one request.
const maxCount = 100_000

// request makes an attempt.
func (s *SequencerOf[I]) request(ctx context.Context, a attempt) (b firn.BatchOf[I], err error) {
	c, to := &s.client.config, &s.view.servers[a.server]
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	token := c.Token
	if c.TokenSource != nil {
		if token, err = c.TokenSource(ctx); err == nil {
			token, err = checkToken(token)
		}
		if err != nil {
			return b, &tokenError{err}
		}
	}
	send := s.requestHTTP
	if to.pool != nil {
		send = s.requestRESP
	}
	runs, err := send(ctx, to, token, a.count, a.packed)
	if err != nil {
		return b, err
	}
	if err := checkRuns(runs, a.count); err != nil {
		return b, s.answerErrorf(to, "%v", err)
	}
	return firn.BatchFromRuns(runs...), nil
}

// answerErrorf returns the error of an answer other than the requested IDs.
func (s *SequencerOf[I]) answerErrorf(from *server, format string, a ...any) error {
	return &answerError{s.name, from.name, fmt.Sprintf(format, a...)}
}

// A tokenError is the error of a TokenSource.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "client: get a token: " + e.err.Error() }

func (e *tokenError) Unwrap() error { return e.err }

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

// isTokenError reports whether the token failed, so no server is asked.
func isTokenError(err error) bool { return errors.As(err, new(*tokenError)) }
