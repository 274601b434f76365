package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/listen"
)

// An endpoint is an address on which serve listens.
type endpoint struct {
	text     string // as given
	flag     string
	address  *net.TCPAddr
	scheme   string      // of HTTP
	path     string      // of a socket in the file system, if there is no address
	mode     fs.FileMode // mode of the socket
	only     []listen.Protocol
	listener net.Listener
}

// endpoints resolves the addresses. It runs before listening, so that no wrong
// address is ever open.
func (s *serveCmd) endpoints() (all []*endpoint, wrong faults) {
	scheme := "http"
	if !s.TLS.IsZero() {
		scheme = "https"
	}
	add := func(flag, text string, only ...listen.Protocol) {
		p := &endpoint{flag: flag, text: text, only: only, scheme: scheme}
		all = append(all, p)
		if err := p.resolve(s); err != nil {
			wrong.addError(flag, text, err)
		}
	}
	for _, text := range s.listen {
		add("listen", text)
	}
	for i, protocol := range []listen.Protocol{listen.HTTP, listen.GRPC, listen.RESP} {
		if text := s.listenOnly[i]; text != "" {
			add("listen-"+protocol.String(), text, protocol)
		}
	}
	if len(all) == 0 { // --listen= leaves only the addresses of single protocols, if any
		wrong.add("listen", "", "write HOST:PORT, such as "+defaultListen+", or unix:PATH", "the address is empty")
	}
	return all, wrong
}

// resolve parses the text.
func (p *endpoint) resolve(s *serveCmd) error {
	if path, ok := strings.CutPrefix(p.text, "unix:"); ok {
		if path == "" {
			return misuse("write unix:PATH, such as unix:/run/firn/socket", "the path is missing")
		}
		var err error
		if p.path, p.mode, err = listen.ParseSocket(path); err != nil {
			return misuse("write unix:/run/firn/socket?mode=0660", "%w", err)
		}
		return nil
	}
	address, err := net.ResolveTCPAddr("tcp", p.text)
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return failed("write the address as a number, such as "+defaultListen, "%w", err)
	}
	if err != nil || p.text == "" {
		err = cmp.Or(err, errors.New("the address is empty"))
		return misuse("write HOST:PORT, such as "+defaultListen+", or unix:PATH", "%w", textfmt.Cause(err))
	}
	p.address = address
	guarded := s.TLS.Cert != "" && (s.TokenFile != "" || s.TLS.Require)
	if guarded || address.IP.IsLoopback() || s.insecure {
		return nil
	}
	lacks := "there are neither TLS nor tokens"
	switch {
	case s.TLS.Cert != "":
		lacks = "clients are not authenticated: add --tokens, or --client-ca and --require-client-cert"
	case s.TokenFile != "":
		lacks = "tokens would be sent unencrypted: add --tls-cert and --tls-key"
	}
	return misuse(fmt.Sprintf("use --listen %s, or --insecure if only trusted programs can reach it",
		netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(address.Port))),
		"other machines can reach this address, and %s", lacks)
}

// textsOf returns the addresses as they were given; the fault of an empty one
// has been reported.
func textsOf(endpoints []*endpoint) (all []string) {
	for _, p := range endpoints {
		if p.text != "" {
			all = append(all, p.text)
		}
	}
	return all
}

// open starts listening.
func (p *endpoint) open() error {
	var err error
	if p.address != nil {
		p.listener, err = net.ListenTCP("tcp", p.address)
	} else {
		p.listener, err = listen.Socket(p.path, p.mode)
	}
	if err == nil {
		return nil
	}
	hint := "choose another address with --listen; port 0 takes a free one"
	switch {
	case p.address == nil:
		hint = ""
	case errors.Is(err, syscall.EADDRINUSE):
		hint = fmt.Sprintf("another program is listening there, possibly another firn serve: stop it, or choose "+
			"another port with --listen %s",
			net.JoinHostPort(p.address.IP.String(), "0"))
	}
	at := p.text
	if p.address != nil {
		at = p.address.String()
	}
	return failed(hint, "listen on %s: %w", at, textfmt.Cause(err))
}

// url returns the URL of the endpoint for programs on this machine.
func (p *endpoint) url() string {
	if p.address == nil {
		return p.text
	}
	scheme := p.scheme
	if len(p.only) == 1 && p.only[0] != listen.HTTP {
		scheme = map[listen.Protocol]string{listen.RESP: "redis", listen.GRPC: "grpc"}[p.only[0]]
	}
	return scheme + "://" + listen.Reachable(p.listener.Addr())
}
