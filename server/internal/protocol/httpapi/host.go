package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// isLoopbackHost reports whether a Host header names this machine: localhost,
// an IPv4 address that begins with 127, or [::1], each with or without a port.
func isLoopbackHost(host string) bool {
	name, port, hasPort := strings.Cut(host, ":")
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return false
		}
		name, port = host[1:end], host[end+1:]
		port, hasPort = strings.CutPrefix(port, ":")
		addr, err := netip.ParseAddr(name)
		return err == nil && addr == netip.IPv6Loopback() && (hasPort || port == "") && isPort(port)
	}
	if hasPort && !isPort(port) {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Is4() && addr.IsLoopback()
}

func isPort(s string) bool {
	return strings.Trim(s, "0123456789") == ""
}

// isCrossSite reports whether a browser sent the request for a page of another
// origin. Such a page cannot read the answer, as there are no CORS headers, but
// its GET would still take IDs and might create a sequencer.
//
// http.CrossOriginProtection has the rule, for methods other than GET.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false // not a browser, or one too old to tell
	}
	as := *r
	as.Method = http.MethodPost
	return origins.Check(&as) != nil
}

var origins = http.NewCrossOriginProtection()
