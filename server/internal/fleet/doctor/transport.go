package doctor

import (
	"context"
	"crypto/tls"
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

// Transport returns a transport for the server at an address, HOST:PORT or
// unix:PATH, whatever the URL. It accepts any certificate: send no secrets over
// it. Another program at this address could lie about the state, but nothing
// more.
func Transport(address string) *http.Transport {
	network, at := split(address)
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, at)
		},
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}
}
