package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/server/internal/ids/lines"
	"github.com/firnid/firn/server/internal/service"
)

// fromServer writes IDs that a server makes, in the sequencer's own format
// unless there is another. It asks over HTTP and not with package client, which
// returns numbers: here the server writes the IDs, because it alone knows their
// width, prefix and keys.
func (n *nextCmd) fromServer(ctx context.Context) error {
	servers := []string{n.server}
	if !hasScheme(servers, "http", "https", "unix") {
		return wrongFlag("server", "", "write http://HOST:PORT, https://HOST:PORT or unix:/PATH",
			"next asks over HTTP")
	}
	c, err := n.remote.client(servers)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	base := strings.TrimSuffix(n.server, "/")
	if path, ok := strings.CutPrefix(n.server, "unix:"); ok {
		base = "http://localhost" // every server accepts this Host
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(path, "//"))
		}
	}
	defer transport.CloseIdleConnections()
	asker := &http.Client{
		Transport: transport,
		Timeout:   time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the token would be sent along, perhaps without TLS
		},
	}
	out := lines.NewWriter(n.app.stdout.Writer)
	most := uint64(service.MaxCount)
	for left := n.count; left > 0; {
		count := min(left, most)
		answer, err := n.ask(ctx, asker, base, c.Token, count)
		switch {
		case errors.Is(err, firn.ErrBatchTooLarge) && count > 1:
			most = count / 2
			continue
		case err != nil:
			return noIDs(ctx, err, n.name, servers)
		}
		parts := bytes.SplitAfter(answer, []byte("\n"))
		if n.format.Is(firn.Raw) {
			parts = [][]byte{answer}
		}
		for _, text := range parts {
			if n.asJSON && len(text) > 0 {
				text = fmt.Appendf(nil, "{\"id\":%q}\n", bytes.TrimSuffix(text, []byte("\n")))
			}
			if _, err := out.Write(text); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		left -= count
	}
	return nil
}

// ask requests IDs, a line each or packed.
func (n *nextCmd) ask(ctx context.Context, c *http.Client, base, token string, count uint64) ([]byte, error) {
	format, accept := "", "text/plain"
	if n.format.Is(firn.Raw) {
		accept = "application/octet-stream"
	} else if !n.ownFormat {
		format = "&format=" + url.QueryEscape(n.format.String())
	}
	address := fmt.Sprintf("%s/v1/sequencers/%s/next?count=%d%s", base, url.PathEscape(n.name), count, format)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Accept", accept)
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := c.Do(q)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	switch isIDs := r.StatusCode == http.StatusOK && strings.HasPrefix(r.Header.Get("Content-Type"), accept); {
	case err != nil:
		return nil, err
	case isIDs && !n.hasIDs(body, count):
		return nil, fmt.Errorf("%s answered with something other than the requested %d IDs", n.server, count)
	case isIDs:
		return body, nil
	}
	kind, _, detail := service.ReadProblem(body)
	if to := r.Header.Get("Location"); to != "" {
		detail = "a redirect to " + to
	} else if kind == "" && detail == "" { // not of a server of Firn
		detail = strings.Join(strings.Fields(string(body[:min(len(body), 100)])), " ")
	}
	return nil, &client.Error{
		Sequencer: n.name, Server: n.server, Status: r.StatusCode, Kind: client.Kind(kind), Detail: detail,
	}
}

// hasIDs reports whether an answer has as many IDs as requested.
func (n *nextCmd) hasIDs(answer []byte, count uint64) bool {
	if n.format.Is(firn.Raw) {
		size := uint64(len(answer))
		return size == 8*count || size == 16*count
	}
	return uint64(bytes.Count(answer, []byte("\n"))) == count && bytes.HasSuffix(answer, []byte("\n"))
}
