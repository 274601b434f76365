package client

import (
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

	"github.com/firnid/firn"
)

// nonceHeader carries a value that is new in every request and returned with
// its answer.
const nonceHeader = "Firn-Nonce"

// requestHTTP asks over HTTP.
func (s *SequencerOf[I]) requestHTTP(ctx context.Context, to *server, token string, n int,
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
		return nil, fmt.Errorf("client: %s: %w", nameAt(s.name, to.name), err)
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
		return nil, fmt.Errorf("client: %s: %w", nameAt(s.name, to.name), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, s.parseProblem(resp, to)
	}
	if got := resp.Header[nonceHeader]; len(got) != 1 || got[0] != nonce {
		return nil, s.answerErrorf(to, "it does not repeat the header %s of this request: something between this program "+
			"and the server caches answers, mixes them up or removes headers", nonceHeader)
	}
	return s.readAnswer(resp, to, accept, n, packed)
}

// readAnswer reads the IDs of an answer.
func (s *SequencerOf[I]) readAnswer(resp *http.Response, to *server, accept string, n int,
	packed bool) (runs []firn.RunOf[I], err error) {
	if got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); got != accept {
		return nil, s.answerErrorf(to, "it is %s, not %s", quote(resp.Header.Get("Content-Type")), accept)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(maxAnswerSize(n))+1))
	if err != nil {
		return nil, fmt.Errorf("client: %s: read the answer: %w", nameAt(s.name, to.name), err)
	}
	switch {
	case len(data) > maxAnswerSize(n):
		err = fmt.Errorf("it has more than %d bytes, the maximum for %d IDs", maxAnswerSize(n), n)
	case packed:
		runs, err = parsePacked[I](data, n)
	default:
		runs, err = parseRuns[I](data)
	}
	if err != nil {
		return nil, s.answerErrorf(to, "%v", err)
	}
	return runs, nil
}

// maxProblem is how much of a problem is read. Those of servers are shorter.
const maxProblem = 16 << 10

// parseProblem parses an answer with a status other than 200.
func (s *SequencerOf[I]) parseProblem(resp *http.Response, from *server) error {
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
		e.Kind = Kind(printable(strings.TrimPrefix(p.Type, "urn:firn:problem:")))
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

// noRedirect returns redirects instead of following them, because a token would
// be sent along.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newTransport returns the transport for one or more servers.
func newTransport(config *tls.Config,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     config.Clone(), // nil stays nil
		TLSHandshakeTimeout: 10 * time.Second,
		// A fetch uses a connection of its own, and a closed one must be
		// dialled again. So keep those of several sequencers, but for less than
		// the 2 minutes after which the server closes them.
		MaxIdleConnsPerHost:    maxIdleConns,
		IdleConnTimeout:        maxIdleTime,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              &http1,
	}
}
