package server

import (
	"net"
	"testing"

	"github.com/firnid/firn/server/listen"
)

// TestAddressOf: the address is that of a listener with gRPC.
func TestAddressOf(t *testing.T) {
	at := func(port int, only ...listen.Protocol) Listener {
		return Listener{fixedListener{addr: &net.TCPAddr{IP: net.IPv4zero, Port: port}}, only}
	}
	for _, tt := range []struct {
		listeners []Listener
		want      string
	}{
		{nil, ""},
		{[]Listener{at(1), at(2, listen.GRPC)}, "host:1"},
		{[]Listener{at(1, listen.HTTP), at(2, listen.GRPC)}, "host:2"},
		{[]Listener{at(1, listen.HTTP), at(2, listen.RESP)}, "host:1"},
		{[]Listener{{fixedListener{addr: &net.UnixAddr{Name: "/x", Net: "unix"}}, nil}, at(2, listen.RESP)}, "host:2"},
	} {
		if got := addressOf(tt.listeners, "host"); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// A fixedListener has an address, and nothing else.
type fixedListener struct {
	net.Listener
	addr net.Addr
}

func (l fixedListener) Addr() net.Addr { return l.addr }
