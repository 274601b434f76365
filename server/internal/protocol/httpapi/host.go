package httpapi

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// isLoopbackHost reports whether a Host header names this machine: localhost,
// an IPv4 address that begins with 127, or [::1], each with or without a port.
func isLoopbackHost(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	addr, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && addr.IsLoopback()
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
