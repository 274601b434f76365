package httpapi

import (
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/service"
)

// respToken names RESP in the header Upgrade.
const respToken = "firn-resp"

// offerHeader offers the switch in an answer. It is not Upgrade, which some
// proxies pass on: clients of HTTP/2 reject an answer that has it.
const offerHeader = "Firn-Upgrade"

// peerHeader is the client's own address, as the client sees it.
const peerHeader = "Firn-Peer"

var (
	headerOffer     = []string{offerHeader}
	headerRESPToken = []string{respToken}
)

// offerRESP tells a client that it may switch a connection to RESP. Both
// headers are for one connection only: a proxy does not pass them on (RFC 9110,
// 7.6.1), so that a client behind one does not hear of it. A connection that
// ends with its answer is not offered anything.
func (h *Handler) offerRESP(w http.ResponseWriter, r *http.Request) {
	if w.Header()["Connection"] == nil && h.resp(r) != nil {
		w.Header()["Connection"], w.Header()[offerHeader] = headerOffer, headerRESPToken
	}
}

// switchToRESP makes a connection of HTTP one of RESP, if nothing stands
// between it and its client: the address that the client has on its side must
// be the one that is seen here. A proxy that would pass the switch on has
// another one, and its users stay with HTTP.
func (h *Handler) switchToRESP(w http.ResponseWriter, r *http.Request) *problem {
	if h.draining.Load() {
		return problemf(service.Draining, "the server finishes what it has and stops: send requests to another one")
	}
	serve := h.resp(r)
	if serve == nil {
		return problemf(service.NotFound, "RESP is not served at this address")
	}
	if !isUpgradeToRESP(r.Header) {
		return problemf(service.BadParameter, "this path switches a connection to RESP: send Connection: Upgrade, Upgrade: %s and %s, or let a Redis client connect to this port without HTTP", respToken, peerHeader)
	}
	if peer := r.Header.Get(peerHeader); !samePeer(peer, r.RemoteAddr) {
		return problemf(service.BadParameter, "%s is %s, which is not where this connection comes from: something stands between the client and the server, so stay with HTTP", peerHeader, inspect.Quote(peer))
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return problemf(service.BadParameter, "this connection cannot be switched to RESP: %v", err)
	}
	if buffered.Reader.Buffered() > 0 { // sent before the switch, so not RESP
		_ = conn.Close()
		return nil
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+respToken+"\r\n\r\n"); err != nil {
		_ = conn.Close()
		return nil
	}
	go serve(conn) // the server of RESP owns it from now on
	return nil
}

// isUpgradeToRESP reports whether a request asks to switch.
func isUpgradeToRESP(h http.Header) bool {
	if h.Get("Upgrade") != respToken {
		return false
	}
	for _, line := range h["Connection"] {
		for word := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(word), "upgrade") {
				return true
			}
		}
	}
	return false
}

// samePeer reports whether two texts are one address and port. The zone of an
// address has another name on each machine.
func samePeer(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX == nil && errY == nil && x.Port() == y.Port() &&
		x.Addr().Unmap().WithZone("") == y.Addr().Unmap().WithZone("")
}
