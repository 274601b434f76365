package doctor

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
)

// split returns the network of an address, HOST:PORT or unix:PATH, and the
// address in it.
func split(address string) (network, at string) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return "unix", path
	}
	return "tcp", address
}

// Ask requests a path from the server at an address, HOST:PORT or unix:PATH,
// with or without TLS, and reads the answer. It accepts any certificate, and so
// sends no secrets. Another program at this address could lie about the state,
// but nothing more.
func Ask(ctx context.Context, address, path string) (answer *http.Response, body []byte, err error) {
	network, at := split(address)
	client := http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, at)
			},
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, scheme := range []string{"http", "https"} {
		var q *http.Request
		if q, err = http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://localhost"+path, nil); err != nil {
			return nil, nil, err
		}
		if answer, err = client.Do(q); err == nil {
			body, err = io.ReadAll(io.LimitReader(answer.Body, 64<<10))
			_ = answer.Body.Close()
		}
		// A server with TLS answers 400 to plain HTTP, or ends the connection.
		if err == nil && answer.StatusCode != http.StatusBadRequest || ctx.Err() != nil {
			break
		}
	}
	return answer, body, err
}
