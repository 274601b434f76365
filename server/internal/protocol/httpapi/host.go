package httpapi

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/firnid/firn/server/internal/access/auth"
)

// Expose says that the server listens on more than loopback and sockets. It
// must be called before the first request.
func (h *Handler) Expose() { h.exposed = true }

// allowsHost reports whether requests for a Host are answered: those for this
// machine and for Config.Hosts. If other machines can reach the server, they
// may use its address, or a name that no web site can have.
func (h *Handler) allowsHost(host string) bool {
	name := strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
	addr, err := netip.ParseAddr(name)
	isAddr := err == nil
	return h.config.AnyHost || name == "localhost" || isAddr && addr.IsLoopback() ||
		slices.ContainsFunc(h.config.Hosts, func(allowed string) bool { return strings.EqualFold(allowed, name) }) ||
		h.exposed && (isAddr || !strings.Contains(name, ".") || slices.ContainsFunc(private,
			func(end string) bool { return strings.HasSuffix(name, end) }))
}

// private are the ends of names that are not in the public DNS: of private
// networks, of multicast DNS and Kubernetes (cluster.local), and of services
// there.
var private = []string{".internal", ".local", ".svc"}

// allowedHosts describes what allowsHost allows.
func (h *Handler) allowedHosts() string {
	if h.exposed {
		return "IP addresses, names without a dot, and those that end with " + list(private)
	}
	return "localhost, 127.0.0.0/8 and [::1]"
}

// mayCreate reports whether a request for IDs may create its sequencer. A GET
// may come from a page of any origin, and on plain HTTP browsers do not say so,
// except to loopback. Certificates and passwords do not help: browsers add them to
// requests of any page, and tokens to none.
func (h *Handler) mayCreate(r *http.Request, creds *auth.Credentials) bool {
	return !h.exposed || r.Method != http.MethodGet || creds.Token != ""
}

// isCrossSite reports whether a browser sent the request for a page of another
// origin. Such a page cannot read the answer, as there are no CORS headers, but
// its GET would still take IDs and might create a sequencer.
//
// http.CrossOriginProtection has the rule, for methods other than GET.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false // not a browser, or a GET over plain HTTP: see mayCreate
	}
	as := *r
	as.Method = http.MethodPost
	return origins.Check(&as) != nil
}

var origins = http.NewCrossOriginProtection()

// credentials returns the credentials of a request.
func credentials(r *http.Request) *auth.Credentials {
	c := auth.FromHeader(r.Header["Authorization"], r.TLS)
	c.Address = r.RemoteAddr
	return c
}
