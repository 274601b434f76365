package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/ids/records"
	"github.com/firnid/firn/server/internal/service"
)

// remoteFlags say as which client a command uses a server.
type remoteFlags struct{ token, tokenFile, ca, cert, key string }

func (r *remoteFlags) vars(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.token, "token", "", "`TOKEN` that may take its IDs")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` with the token; other users can see the arguments of a command")
	f.StringVar(&r.ca, "ca", "", "PEM `FILE` with the authority of the server's certificate (default the system's)")
	f.StringVar(&r.cert, "cert", "", "PEM `FILE` with a client certificate")
	f.StringVar(&r.key, "key", "", "PEM `FILE` with the key of --cert")
	cmd.MarkFlagsMutuallyExclusive("token", "token-file")
	cmd.MarkFlagsRequiredTogether("cert", "key")
}

// client returns the configuration of a client, with the token and the
// certificates in the files.
func (r *remoteFlags) client(servers []string) (c client.Config, err error) {
	c = client.Config{Servers: servers, Token: r.token}
	if r.tokenFile != "" {
		f, err := auth.OpenToken(r.tokenFile)
		if err != nil {
			return c, failed("the file must contain one token, as printed by firn token new", "--token-file: %w", err)
		}
		c.Token = f.Get()
	}
	if r.ca != "" || r.cert != "" {
		if c.TLS, err = tlsconf.Dialer(r.ca, r.cert, r.key); err != nil {
			return c, failed("--ca, --cert and --key must be PEM files", "%w", err)
		}
	}
	if _, err := client.New(c); err != nil {
		return c, misuse("write --server http://HOST:PORT, https://HOST:PORT, firn://HOST:PORT or firns://HOST:PORT", "%w", err)
	}
	return c, nil
}

// noIDs says why servers gave no IDs, and what to do.
func noIDs(ctx context.Context, err error, sequencer string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hint := tlsconf.Hint(err, "--ca FILE", "--cert FILE and --key FILE")
	switch e, ok := errors.AsType[*client.Error](err); {
	case hint != "":
	case ok && e.Status == http.StatusUnauthorized:
		hint = "name a token that the server knows with --token-file FILE; firn token new makes one"
	case ok && e.Status == http.StatusForbidden:
		hint = "name a token that may take IDs of " + sequencer + " with --token-file FILE, or another sequencer with --sequencer"
	case !ok || e.Kind == "": // otherwise the detail says it
		hint = "check that firn serve is running there; if it uses TLS, write https:// or firns://"
	}
	return failed(hint, "no IDs: %w", err)
}

// fromServer writes IDs that a server makes, in the sequencer's own format
// unless there is another. It asks over HTTP, because there the server writes
// them.
func (n *nextCmd) fromServer(ctx context.Context) error {
	c, err := n.remote.client([]string{n.server})
	if err != nil {
		return err
	}
	if !strings.HasPrefix(n.server, "http") {
		return misuse("write --server http://HOST:PORT or https://HOST:PORT", "next asks over HTTP")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	defer transport.CloseIdleConnections()
	asker := &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token would be sent along, perhaps without TLS
	}}
	out := records.NewWriter(n.app.stdout.Writer)
	for left := n.count; left > 0; {
		count := min(left, service.MaxCount)
		answer, err := n.ask(ctx, asker, c.Token, count)
		if err != nil {
			return noIDs(ctx, err, n.name)
		}
		lines := bytes.SplitAfter(answer, []byte("\n"))
		if n.format.Is(firn.Raw) {
			lines = [][]byte{answer}
		}
		for _, text := range lines {
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
func (n *nextCmd) ask(ctx context.Context, c *http.Client, token string, count uint64) ([]byte, error) {
	format, accept := "", "text/plain"
	if n.format.Is(firn.Raw) {
		accept = "application/octet-stream"
	} else if !n.ownFormat {
		format = "&format=" + url.QueryEscape(n.format.String())
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("%s/v1/sequencers/%s/next?count=%d%s", strings.TrimSuffix(n.server, "/"), url.PathEscape(n.name), count, format), nil)
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
	if err != nil || r.StatusCode == http.StatusOK && strings.HasPrefix(r.Header.Get("Content-Type"), accept) {
		return body, err
	}
	var problem struct{ Type, Detail string }
	if json.Unmarshal(body, &problem) != nil {
		problem.Detail = strings.Join(strings.Fields(string(body[:min(len(body), 100)])), " ") // not of a server of Firn
	}
	if to := r.Header.Get("Location"); to != "" {
		problem.Detail = "a redirect to " + to
	}
	return nil, &client.Error{
		Sequencer: n.name, Server: n.server, Status: r.StatusCode, Detail: problem.Detail,
		Kind: strings.TrimPrefix(problem.Type, "urn:firn:problem:"),
	}
}
