package server

import (
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/operate/issued"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/veil"
)

// Config is the configuration of a Server. Exactly one of Store and Static is
// set. The zero value of every other field has the meaning given at the field.
type Config struct {
	// Store keeps node IDs. The caller opens it, and closes it after Shutdown.
	Store grant.Store

	// Static is a node ID that the caller keeps unique, for a server without a
	// Store. MaxSequencers and VeilKeys are set from the fields below.
	Static *service.StaticBackendConfig

	// Sequencers is how the sequencers of the Store are created and opened. All
	// fields have their effect except Idle, which neither it nor Template may
	// set. With MustExist, sequencers are not created by using them. With
	// WaitForNode, requests wait for a node ID until their timeout. If its
	// Logger is nil, the Logger below is used.
	Sequencers sequencer.Options

	// VeilKeys are the keys of veiled IDs (format=veiled); zero gives none.
	VeilKeys veil.Keys

	// MaxSequencers is how many sequencers are in use at once; 0 means
	// service.DefaultMaxSequencers.
	MaxSequencers int

	// Template sets in c, a copy of Sequencers, what is different for the
	// sequencer of a name. It is called when a name is first used, concurrently
	// for several names; nil changes nothing.
	Template func(name string, c *sequencer.Options) error

	// ForwardTo are other servers of the Store, as http or https URLs without a
	// path, to ask for IDs while this one holds no node ID. Their certificates
	// must be signed by an authority of client certificates in TLS if it has one,
	// and otherwise by one that the system trusts.
	ForwardTo []string

	// ForwardTokenFile is the path of a file with the token for servers in
	// ForwardTo; "" sends none. The Server reads the file again when it
	// changes.
	ForwardTokenFile string

	// Advertise is the HOST:PORT of this server that lists of servers show; ""
	// means the address of a listener.
	Advertise string

	// TokenFile is the path of the file that says what each client may do, as
	// firn token new writes it. "" allows everything to everyone, unless TLS
	// requires client certificates: their owners may then take IDs, and nothing
	// more. The Server reads the file again when it changes.
	TokenFile string

	// TLS encrypts connections; zero means plain text. The Server reads the
	// files again when they change.
	TLS tlsconf.Files

	// Hosts are host names for which HTTP requests are answered in addition, by
	// a server without TokenFile and TLS. It answers only localhost,
	// 127.0.0.0/8 and [::1], and if it listens on more than loopback also IP
	// addresses, names without a dot, and the host of Advertise: any web page
	// could reach it through a host name of its own that resolves to this
	// machine (DNS rebinding).
	Hosts []string

	// IssueLog records who receives which IDs; nil records nothing. The caller
	// closes it after Shutdown.
	IssueLog *issued.Log

	// RequestTimeout is how long a request may wait for its IDs; 0 means
	// service.DefaultRequestTimeout.
	RequestTimeout time.Duration

	// Limits bound requests and connections of all protocols.
	Limits service.Limits

	// RESPIdle is how long a RESP connection may be idle; 0 means forever.
	RESPIdle time.Duration

	// RESPRefuseUnsafe makes INCR return an error for layouts whose IDs can
	// exceed 2^53, where JavaScript clients round integers.
	RESPRefuseUnsafe bool

	// MaxConns is how many connections each listener may have at once; 0 means
	// listen.DefaultMaxConns. The limit is lower if the system allows the
	// process fewer open files.
	MaxConns int

	// Tracing makes the spans of requests; nil traces nothing. The caller shuts
	// it down after Shutdown.
	Tracing trace.TracerProvider

	// Version is the version that the Server reports; "" means unknown.
	Version string

	// Logger receives log messages; nil discards them.
	Logger *slog.Logger
}

// A Listener is an address that a Server serves.
type Listener struct {
	net.Listener

	// Only lists the protocols to serve; nil means all.
	Only []listen.Protocol
}
