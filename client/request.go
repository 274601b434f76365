package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/firnid/firn"
)

// maxCount is the maximum number of IDs in one request.
const maxCount = 100_000

// request makes an attempt.
func (s *SequencerOf[I]) request(ctx context.Context, a attempt) (b firn.BatchOf[I], err error) {
	c, to := &s.client.config, &s.view.servers[a.server]
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	token := ""
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
	if b, err = batchOf(runs, a.count); err != nil {
		return b, s.answerErrorf(to, "%s", strings.TrimPrefix(err.Error(), "firn: "))
	}
	return b, nil
}

// answerErrorf returns the error of an answer other than the requested IDs.
func (s *SequencerOf[I]) answerErrorf(from *server, format string, a ...any) error {
	return &answerError{s.name, from.name, fmt.Sprintf(format, a...)}
}
