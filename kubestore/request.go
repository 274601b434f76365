package kubestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	// tries is how often a read is attempted. A write is attempted once.
	tries = 4

	// firstPause is roughly the wait before the second attempt of a read; it
	// doubles.
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// url returns the address of the namespace's Leases, or of one of them.
func (s *store) url(name string, query url.Values) string {
	u := *s.leases // it is shared
	if name != "" {
		u = *u.JoinPath(name)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// send makes one request, once. sent reports whether any of it may have left
// the process. An answer other than success is a *refusal.
//
// The client of net/http repeats a request with a body only if none of it was
// written, or if the server reports that it has not processed it. Redirects are
// not followed.
func (s *store) send(ctx context.Context, method, address string, body any) (
	answer *http.Response, sent bool, err error,
) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, false, err
		}
		content = bytes.NewReader(text)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	q, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, false, err
	}
	q.Header.Set("Accept", "application/json")
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	answer, err = s.client.Do(q)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
			err = inner.Err
		}
		return nil, connected.Load(), err
	}
	if answer.StatusCode/100 == 2 {
		return answer, true, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<20)) // a part of the text is enough
	_ = answer.Body.Close()
	return nil, true, newRefusal(answer, text)
}

// write makes a request that writes, once, and returns the object in the
// answer.
func (s *store) write(ctx context.Context, method, address string, body any) (_ *lease, sent bool, err error) {
	answer, sent, err := s.send(ctx, method, address, body)
	if err != nil {
		return nil, sent, err
	}
	l := new(lease)
	return l, true, decode(answer, l)
}

// read makes a request that reads, and decodes the answer. It retries if the
// connection is lost or the server reports that it is overloaded or failing.
func (s *store) read(ctx context.Context, address string, into any) error {
	pause := firstPause
	var reason error
	for n := 1; ; n++ {
		answer, _, err := s.send(ctx, http.MethodGet, address, nil)
		if err == nil {
			err = decode(answer, into)
		}
		wait := pause/2 + rand.N(pause)
		if r, ok := errors.AsType[*refusal](err); ok {
			if !r.isPassing() {
				return err
			}
			wait = max(wait, min(r.retryAfter, maxPause))
		}
		if err == nil {
			return nil
		}
		if reason = because(ctx, err, reason); n == tries || ctx.Err() != nil {
			return reason
		}
		select {
		case <-ctx.Done():
			return reason
		case <-time.After(wait):
		}
		pause = min(2*pause, maxPause)
	}
}

// because returns err, the error of an attempt, with that of the attempt before
// if it says no more than that ctx has ended.
func because(ctx context.Context, err, before error) error {
	if before != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return fmt.Errorf("%w, after: %w", err, before)
	}
	return err
}

// decode decodes an answer with exactly one object.
func decode(answer *http.Response, into any) error {
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("the answer ends early, or does not come from the Kubernetes API: %w", err)
	}
	return nil
}
