package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/firnid/firn"
)

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

// nonceHeader carries a value that is new in every request and returned with
// its answer.
const nonceHeader = "Firn-Nonce"

// request requests n IDs from one server, once, as runs or packed.
func (s *SequencerOf[I]) request(ctx context.Context, to *server, n int, packed bool) (b firn.BatchOf[I], err error) {
	c := &s.client.config
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
	ask := s.post
	if to.pool != nil {
		ask = s.ask
	}
	runs, err := ask(ctx, to, token, n, packed)
	if err != nil {
		return b, err
	}
	if err := checkRuns(runs, n); err != nil {
		return b, s.unusable(to, "%v", err)
	}
	return firn.BatchFromRuns(runs...), nil
}

// ask asks over RESP.
func (s *SequencerOf[I]) ask(ctx context.Context, to *server, token string, n int,
	packed bool) (runs []firn.RunOf[I], err error) {
	command := "NEXTR"
	if packed {
		command = "NEXTB"
	}
	words := appendCommand(nil, command, s.name, strconv.Itoa(n))
	err = to.pool.ask(ctx, token, words, func(r *bufio.Reader, refused string) (err error) {
		var wrong error
		first, err := r.Peek(1)
		switch {
		case err != nil:
		case first[0] == '-':
			var text []byte
			if _, text, err = readLine(r); err == nil {
				err = s.fault(cmp.Or(refused, string(text)), to)
			}
		case packed:
			var data []byte
			if data, err = readText(r, 16*n); err == nil {
				runs, wrong = parsePacked[I](data, n)
			}
		default:
			runs, wrong, err = readRuns[I](r, n)
		}
		if wrong != nil {
			err = s.unusable(to, "%v", wrong)
		}
		return err
	})
	switch {
	case err == nil || errors.As(err, new(*Error)) || errors.As(err, new(*answerError)):
		return runs, err
	case err == errFraming:
		return nil, s.unusable(to, "it is %v: use firn:// only for the address of a Firn server", err)
	}
	return nil, fmt.Errorf("client: %s: %w", place(s.name, to.name), err)
}

// fault parses an error of RESP: WORD kind: detail; retry after N s. Errors
// without a kind come from something other than a Firn server, or from Redis's
// own texts for authentication.
func (s *SequencerOf[I]) fault(text string, from *server) error {
	e := &Error{Sequencer: s.name, Server: from.name, Status: http.StatusInternalServerError}
	word, rest, _ := strings.Cut(text, " ")
	kind, detail, _ := strings.Cut(rest, ": ")
	if k, known := problemKinds[kind]; known {
		e.Kind, e.Status = kind, k.status
	} else {
		detail = rest
		switch word {
		case "NOAUTH", "WRONGPASS":
			e.Kind, e.Status = "unauthorized", http.StatusUnauthorized
		case "NOPERM":
			e.Kind, e.Status = "forbidden", http.StatusForbidden
		case "TRYAGAIN", "UNAVAILABLE":
			e.Status = http.StatusServiceUnavailable
		}
	}
	if i := strings.LastIndex(detail, "; retry after "); i >= 0 {
		seconds, _ := strings.CutSuffix(detail[i+len("; retry after "):], " s")
		if e.RetryAfter = retryAfter(seconds); e.RetryAfter > 0 {
			detail = detail[:i]
		}
	}
	e.Detail = printable(detail)
	e.Hint = hintOf(e.Kind, e.Status)
	return e
}

// unusable returns the error of an answer other than the requested IDs.
func (s *SequencerOf[I]) unusable(from *server, format string, a ...any) error {
	return &answerError{s.name, from.name, fmt.Sprintf(format, a...)}
}

// post asks over HTTP.
func (s *SequencerOf[I]) post(ctx context.Context, to *server, token string, n int,
	packed bool) ([]firn.RunOf[I], error) {
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
		return nil, fmt.Errorf("client: %s: %w", place(s.name, to.name), err)
	}
	req.Header["Accept"] = []string{accept}
	req.Header["User-Agent"] = []string{"firn-client"}
	// Not sent: it makes net/http retry by itself if the server has just closed
	// the connection. A retry makes new IDs.
	req.Header["X-Idempotency-Key"] = []string{}
	nonce := rand.Text()
	req.Header[nonceHeader] = []string{nonce}
	if token != "" {
		req.Header["Authorization"] = []string{"Bearer " + token}
	}

	resp, err := to.http.Do(req)
	if err != nil {
		if of, ok := errors.AsType[*url.Error](err); ok {
			err = of.Err // the URL only repeats the names of server and sequencer
		}
		if errors.Is(err, http.ErrSchemeMismatch) {
			err = fmt.Errorf("%w: write http:// in Config.Servers", err)
		}
		return nil, fmt.Errorf("client: %s: %w", place(s.name, to.name), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, s.problem(resp, to)
	}
	if got := resp.Header[nonceHeader]; len(got) != 1 || got[0] != nonce {
		return nil, s.unusable(to, "it does not repeat the header %s of this request: something between this program "+
			"and the server caches answers, mixes them up or removes headers", nonceHeader)
	}
	return s.readAnswer(resp, to, accept, n, packed)
}

// readAnswer reads the IDs of an answer.
func (s *SequencerOf[I]) readAnswer(resp *http.Response, to *server, accept string, n int,
	packed bool) (runs []firn.RunOf[I], err error) {
	if got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); got != accept {
		return nil, s.unusable(to, "it is %s, not %s", quote(resp.Header.Get("Content-Type")), accept)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(maxAnswer(n))+1))
	if err != nil {
		return nil, fmt.Errorf("client: %s: read the answer: %w", place(s.name, to.name), err)
	}
	switch {
	case len(data) > maxAnswer(n):
		err = fmt.Errorf("it has more than %d bytes, the maximum for %d IDs", maxAnswer(n), n)
	case packed:
		runs, err = parsePacked[I](data, n)
	default:
		runs, err = parseRuns[I](data)
	}
	if err != nil {
		return nil, s.unusable(to, "%v", err)
	}
	return runs, nil
}

// maxProblem is how much of a problem is read. Those of servers are shorter.
const maxProblem = 16 << 10

// problem parses an answer with a status other than 200.
func (s *SequencerOf[I]) problem(resp *http.Response, from *server) error {
	e := &Error{
		Sequencer: s.name, Server: from.name, Status: resp.StatusCode,
		RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
	// Even a part of the body is informative.
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	var p struct{ Type, Title, Detail string }
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch location := resp.Header.Get("Location"); {
	case media == "application/problem+json" && json.Unmarshal(data, &p) == nil:
		e.Kind = printable(strings.TrimPrefix(p.Type, "urn:firn:problem:"))
		if e.Kind == "about:blank" {
			e.Kind = ""
		}
		e.Detail = printable(cmp.Or(p.Detail, p.Title))
	case location != "" && e.Status >= 300 && e.Status < 400:
		e.Detail = "a redirect to " + quote(location)
	case len(bytes.TrimSpace(data)) > 0:
		e.Detail = "the answer begins with " + quote(string(bytes.TrimSpace(data)))
	}
	e.Hint = hintOf(e.Kind, e.Status)
	return e
}

// retryAfter parses the header of this name. It returns 0 for anything but
// seconds, such as a date.
func retryAfter(text string) time.Duration {
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

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
