package server

import (
	"net"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
)

// Values that zero fields of Config stand for.
const (
	DefaultMaxConns = listen.DefaultMaxConns
	DefaultMaxNames = service.DefaultMaxNames
	DefaultLimit    = service.DefaultLimit
)

// Static is the node ID of a Server without a Store. Two processes that use the
// same one at the same time make the same IDs; see firn.StaticGrant.
type Static struct {
	Layout  firn.Layout // firn.Default if zero
	Node    uint64
	Options *firn.Options // of every generator; nil means the defaults
}

// A Template is how the sequencer of a name differs from Config.Sequencers. The
// zero value of a field changes nothing.
type Template struct {
	Layout   firn.Layout    // of a sequencer that is created
	MaxAhead *time.Duration // likewise
	Window   time.Duration  // likewise
	Prefix   string         // likewise
	LowBits  int            // likewise
	Nodes    *grant.Range   // node IDs that this server may take
	Existing bool           // the sequencer must exist; it is not created
}

// TLS has the paths of PEM files.
type TLS struct {
	Cert string // the server's certificate, followed by intermediate ones
	Key  string

	// ClientCA has the authorities of client certificates. "" means that clients
	// need no certificate, and that certificates are ignored.
	ClientCA string

	// Require refuses clients without a certificate. It requires ClientCA.
	Require bool
}

// Limits bound the size of requests and the time of connections.
type Limits struct {
	Count  int           // IDs per request; 0 means 100,000, which is also the maximum
	Body   int           // bytes of a body; 0 means 64 KiB
	Header int           // bytes of a header, to which HTTP/1.1 adds 4 KiB; 0 means 16 KiB
	Read   time.Duration // for a header, and again for a body; 0 means 10 s
	Write  time.Duration // for the answer, after Config.Limit; 0 means 30 s
	Idle   time.Duration // between requests; 0 means 2 min
}

// A Protocol is one that a Server speaks.
type Protocol int

// The protocols.
const (
	HTTP = Protocol(listen.HTTP)
	GRPC = Protocol(listen.GRPC)
	RESP = Protocol(listen.RESP)
)

// String returns the name of the protocol, such as "http".
func (p Protocol) String() string { return listen.Protocol(p).String() }

// A Listener is an address that a Server serves.
type Listener struct {
	net.Listener

	// Only lists the protocols to serve; nil means all.
	Only []Protocol
}
