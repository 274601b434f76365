package client

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// An address is the address of a server.
type address struct {
	resp   string // HOST:PORT of a server that is asked over RESP, or ""
	base   string // otherwise, the prefix of URLs, without a slash at the end
	socket string // path of a Unix domain socket, or ""
	secure bool
}

// withoutSecret returns the text of an invalid address. If it may have a
// password or another secret, the text ends after ://.
func withoutSecret(text string) string {
	if !strings.ContainsAny(text, "@?#") {
		return text
	}
	scheme, _, _ := strings.Cut(text, "://")
	if strings.ContainsAny(scheme, ":@/?#") {
		return "…"
	}
	return scheme + "://…"
}

// parseAddress parses one of Config.Servers.
func parseAddress(text string) (a address, err error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" || strings.ContainsFunc(path, unicode.IsControl) {
			return a, errors.New("the path of the socket is missing, or has a control character: write unix:/PATH")
		}
		// Every server accepts this Host.
		return address{base: "http://localhost", socket: path}, nil
	}
	scheme, _, _ := strings.Cut(strings.ToLower(text), ":")
	if !slices.Contains([]string{"firn", "firns", "http", "https"}, scheme) {
		return a, errors.New("write firn://HOST:PORT, firns://HOST:PORT, http://HOST:PORT, https://HOST:PORT or " +
			"unix:/PATH")
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return a, fmt.Errorf("write %s://HOST:PORT, without a user name, a query or a fragment", scheme)
	}
	if u.Scheme == "firn" || u.Scheme == "firns" {
		if strings.Trim(u.Path, "/") != "" {
			return a, fmt.Errorf("%s:// has no path: use http:// behind a proxy", u.Scheme)
		}
		return address{resp: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "3476")), secure: u.Scheme == "firns"}, nil
	}
	base := u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/")
	return address{base: base, secure: u.Scheme == "https"}, nil
}
