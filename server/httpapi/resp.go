package httpapi

import (
	"io"
	"net/http"
	"net/netip"
	"strings"

	"github.com/firnid/firn/server/inspect"
	"github.com/firnid/firn/server/service"
)

// respToken is the name of RESP in the Upgrade header.
const respToken = "firn-resp"

// offerHeader offers the switch in an answer. It is not Upgrade, which some
// proxies pass on: clients of HTTP/2 reject an answer that has it.
const offerHeader = "Firn-Upgrade"

// peerHeader is the header with the client's own address, as the client sees
// it.
const peerHeader = "Firn-Peer"

var (
	headerOffer     = []string{offerHeader}
	headerRESPToken = []string{respToken}
)

// offerRESP tells a client that it may switch the connection to RESP. Both
// headers are hop-by-hop: a proxy does not pass them on (RFC 9110, 7.6.1), so a
// client behind one does not get the offer. A connection that ends with its
// answer gets no offer.
func (h *Handler) offerRESP(w http.ResponseWriter, r *http.Request) {
	if w.Header()["Connection"] == nil && h.resp(r) != nil {
		w.Header()["Connection"], w.Header()[offerHeader] = headerOffer, headerRESPToken
	}
}

// switchToRESP switches an HTTP connection to RESP if client and server are
// connected directly: the client's own address must be the one that the server
// sees. A proxy that passes the upgrade on has another address, and its clients
// stay with HTTP.
func (h *Handler) switchToRESP(w http.ResponseWriter, r *http.Request) *problem {
	if h.draining.Load() {
		return problemf(service.Draining, "the server is shutting down: send requests to another one")
	}
	serve := h.resp(r)
	if serve == nil {
		return problemf(service.NotFound, "RESP is not served at this address")
	}
	if !isUpgradeToRESP(r.Header) {
		return problemf(service.BadParameter, "this path switches a connection to RESP: send Connection: Upgrade, Upgrade: %s and %s, or connect to this port with a Redis client, without HTTP", respToken, peerHeader)
	}
	if peer := r.Header.Get(peerHeader); !samePeer(peer, r.RemoteAddr) {
		return problemf(service.BadParameter, "%s is %s, which is not the address that this server sees: there is a proxy between client and server, so stay with HTTP", peerHeader, inspect.Quote(peer))
	}
	if r.ContentLength != 0 { // otherwise the body would be executed as commands
		return problemf(service.BadParameter, "a request that switches to RESP has no body: send commands after the answer 101")
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
	go serve(conn) // the RESP server now owns the connection
	return nil
}

// isUpgradeToRESP reports whether a request asks for the switch.
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

// samePeer reports whether two texts are the same address and port. It ignores
// zones, whose names differ between machines.
func samePeer(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX == nil && errY == nil && x.Port() == y.Port() &&
		x.Addr().Unmap().WithZone("") == y.Addr().Unmap().WithZone("")
}
