package client

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/firnid/firn"
)

// A tokenError is the error of a TokenSource.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "client: get a token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// isTimeout reports whether a request took too long.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// nonceHeader carries a value that is new in every request and returned with
// its answer.
const nonceHeader = "Firn-Nonce"

// newNonce returns 128 random bits. They need not be secret.
func newNonce() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], rand.Uint64())
	binary.BigEndian.PutUint64(raw[8:], rand.Uint64())
	return hex.EncodeToString(raw[:])
}

// request requests n IDs from one server, once, as runs or packed.
func (s *SequencerOf[I]) request(ctx context.Context, to *server, n int, packed bool) (b firn.BatchOf[I], err error) {
	c := &s.client.config
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()

	target := to.base + s.path + "?count=" + strconv.Itoa(n)
	accept := "application/octet-stream"
	if !packed {
		// The number of hexadecimal digits shows the width of the IDs; that of
		// decimal digits does not.
		target += "&runs=true&format=hex"
		accept = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return b, fmt.Errorf("client: %s at %s: %w", s.name, to.name, err)
	}
	req.Header["Accept"] = []string{accept}
	req.Header["User-Agent"] = []string{c.UserAgent}
	// Not sent: it makes net/http retry by itself if the server has just closed
	// the connection. A retry makes new IDs.
	req.Header["X-Idempotency-Key"] = []string{}
	nonce := newNonce()
	req.Header[nonceHeader] = []string{nonce}
	token := c.Token
	if c.TokenSource != nil {
		if token, err = c.TokenSource(ctx); err != nil {
			return b, &tokenError{err}
		}
	}
	if token != "" {
		req.Header["Authorization"] = []string{"Bearer " + token}
	}

	resp, err := to.http.Do(req)
	if err != nil {
		return b, fmt.Errorf("client: %s at %s: %w", s.name, to.name, reasonOf(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return b, s.problem(resp, to)
	}
	unusable := func(format string, a ...any) error {
		return &AnswerError{s.name, to.name, fmt.Sprintf(format, a...)}
	}
	// An older server, or one behind a proxy that drops the header, answers
	// without it.
	if got := resp.Header[nonceHeader]; len(got) > 1 || len(got) == 1 && got[0] != nonce {
		return b, unusable("it is the answer to another request: something between this program and the server caches answers or mixes them up")
	}
	if got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); got != accept {
		return b, unusable("it is %s, not %s", quote(resp.Header.Get("Content-Type")), accept)
	}
	most := int64(maxAnswer(n))
	if packed {
		most = int64(n * idSize[I]())
	}
	if other := 24 - idSize[I](); packed && resp.ContentLength == int64(n*other) {
		return b, unusable("%v", widthError(other))
	}
	if resp.ContentLength > most {
		return b, unusable("it has %d bytes, but %d IDs have at most %d", resp.ContentLength, n, most)
	}
	data, err := readAll(resp, most+1)
	if err != nil {
		return b, fmt.Errorf("client: %s at %s: read the answer: %w", s.name, to.name, err)
	}
	if int64(len(data)) > most {
		return b, unusable("it has more than %d bytes, the maximum for %d IDs", most, n)
	}
	var runs []firn.RunOf[I]
	if packed {
		runs, err = parsePacked[I](data, n)
	} else {
		runs, err = parseRuns[I](data, n)
	}
	if err != nil {
		return b, unusable("%v", err)
	}
	if s.isRepeat(runs[0].First) {
		return b, unusable("it begins with the same ID as the previous one: something between this program and the server caches answers")
	}
	return firn.BatchFromRuns(runs...), nil
}

// readAll reads a body, but no more than its first most bytes.
func readAll(resp *http.Response, most int64) ([]byte, error) {
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 && n < most {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(io.LimitReader(resp.Body, most))
	return buf.Bytes(), err
}

// reasonOf returns an error of net/http without the URL, which only repeats the
// names of server and sequencer.
func reasonOf(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// maxProblem is how much of a problem is read. Those of servers are shorter.
const maxProblem = 16 << 10

// problem parses an answer with a status other than 200.
func (s *SequencerOf[I]) problem(resp *http.Response, from *server) error {
	e := &Error{Sequencer: s.name, Server: from.name, Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	// Even a part of the body is informative.
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p struct{ Type, Title, Detail string }
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch location := resp.Header.Get("Location"); {
	case media == "application/problem+json" && json.Unmarshal(data, &p) == nil:
		e.Kind = strings.TrimPrefix(p.Type, "urn:firn:problem:")
		if e.Kind == "about:blank" {
			e.Kind = ""
		}
		e.Detail = p.Detail
		if e.Detail == "" {
			e.Detail = p.Title
		}
	case location != "" && e.Status >= 300 && e.Status < 400:
		e.Detail = "a redirect to " + quote(location)
	case len(bytes.TrimSpace(data)) > 0:
		e.Detail = "the answer begins with " + quote(string(bytes.TrimSpace(data)))
	}
	e.Hint = hintOf(e.Kind, e.Status)
	return e
}

// retryAfter parses the header of this name: seconds or a date. It returns 0
// for anything else.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// quote quotes a text from a server, truncated to fit a log line.
func quote(text string) string {
	const most = 80
	if len(text) <= most {
		return strconv.Quote(text)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.Quote(text[:cut]) + "…"
}
