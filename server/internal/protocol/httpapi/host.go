package httpapi

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
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
		return "IP addresses, names without a dot, and those that end with " + joinNames(private)
	}
	return "localhost, 127.0.0.0/8 and [::1]"
}
