package forwarding

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/requestid"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// Errors of a Forwarder.
var (
	// ErrUnreachable means that a target did not answer, or is about to stop.
	// Another target may answer. It says nothing about the store.
	ErrUnreachable = errors.New("another server does not answer")

	// ErrRefused means that a target is not the intended server: it has
	// another member ID or version, or another store or none.
	ErrRefused = errors.New("another server is not the intended one")

	// ErrForwarded means that the call came from another server, and so is not
	// forwarded to a third one. It matches grant.ErrNodesExhausted, the reason to
	// forward it.
	ErrForwarded = fmt.Errorf("%w, and the call was already forwarded once", grant.ErrNodesExhausted)
)

// A Target is a server to forward to, described by its members.Member.
type Target struct {
	Member  string // its ID: only this server may answer
	Address string // HOST:PORT
	TLS     bool
}

// place returns the address of a Target; several targets may share one.
func (t Target) place() place { return place{t.Address, t.TLS} }

type place struct {
	address string
	tls     bool
}

// An AnswerOf is the answer of a Target.
type AnswerOf[I firn.AnyID[I]] struct {
	Batch firn.BatchOf[I]
	Owner string // the owner that the store's record of the node ID must have
}

// The answers for both ID sizes.
type (
	Answer    = AnswerOf[firn.ID]
	Answer128 = AnswerOf[firn.ID128]
)

// ForwarderConfig configures how a Forwarder reaches other servers. The zero
// value of a field has the meaning given at the field.
type ForwarderConfig struct {
	// TLS is for targets with TLS: authorities and, for mTLS, the certificate of
	// this server. nil means that targets with TLS are not called: the authorities
	// that the system trusts vouch for any address that the store may name. A
	// target is verified by the host of its address, unless ServerName is set.
	TLS *tls.Config

	// Token returns the token to send; "" or a nil function sends none. It is
	// called for every call, so the token can change.
	Token func() string

	// PlainToken allows sending the token without TLS. Otherwise such a call fails
	// before anything is sent.
	PlainToken bool

	// Limit is how long a call may take, unless the deadline of its context is
	// earlier; 0 means service.DefaultLimit.
	Limit time.Duration

	// MaxTargets is how many addresses the Forwarder keeps connections to; 0 means
	// DefaultMaxTargets. It closes the least recently used one.
	MaxTargets int

	// Dial opens connections; nil means TCP without a proxy.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	// Options are further options of connections, such as a stats handler for
	// traces.
	Options []grpc.DialOption

	// Log receives every call at level debug; nil discards them.
	Log *slog.Logger
}

// DefaultMaxTargets is the value of ForwarderConfig.MaxTargets that 0 stands
// for.
const DefaultMaxTargets = 64

// Timings of a Forwarder's connections.
const (
	forwardConnect = 3 * time.Second  // to connect
	forwardBackoff = 3 * time.Second  // longest wait before a retry
	forwardPing    = 30 * time.Second // if silent; a server allows a ping every 5 s
	forwardIdle    = 10 * time.Minute // until it is closed
)

// A Forwarder takes IDs from other servers, for a server that has no node ID
// itself. It keeps one connection per server, which all calls share.
//
// A forwarded call is not forwarded again (see service.Forwarded). A target
// answers only if it is the intended server and uses the same store (see
// service.Receiver). If an answer is lost on its way, its IDs are never used;
// no ID is given twice.
//
// It is safe for concurrent use. It must be made by NewForwarder, and ends with
// Close.
type Forwarder struct {
	c ForwarderConfig

	mu     sync.Mutex // guards the fields below, and all links
	links  map[place]*link
	calls  uint64 // counter that orders the last uses of links
	closed bool
}

// A link is the connection to an address.
type link struct {
	conn  *grpc.ClientConn
	users int    // calls in progress
	last  uint64 // value of calls at its last use
}

// NewForwarder makes a Forwarder. It opens no connection yet.
func NewForwarder(c ForwarderConfig) *Forwarder {
	c.Limit = cmp.Or(c.Limit, service.DefaultLimit)
	c.MaxTargets = cmp.Or(c.MaxTargets, DefaultMaxTargets)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Forwarder{c: c, links: make(map[place]*link)}
}

// Close closes all connections. Calls in progress fail.
func (f *Forwarder) Close() error {
	f.mu.Lock()
	f.closed = true
	links := f.links
	f.links = nil
	f.mu.Unlock()
	var errs []error
	for _, l := range links {
		errs = append(errs, l.conn.Close())
	}
	return errors.Join(errs...)
}

// Forward takes n IDs, 1 to service.MaxCount, of a sequencer from a target. p
// is the proof of this server's store. l is the layout in the store: IDs of
// another layout are an error. The caller must check that the IDs can be the
// target's.
//
// An error that the target returned is a *ForwardError; errors.Is matches the
// error at the target, or ErrRefused. If the target did not answer, the error
// matches ErrUnreachable.
func (f *Forwarder) Forward(ctx context.Context, t Target, p members.Proof, name string, l firn.Layout, n int) (Answer, error) {
	return forwardOf(ctx, f, t, p, name, l, n, 64, func(r *firnv1.NextResponse) ([]firn.Run, error) {
		if len(r.GetIds128()) > 0 {
			return nil, errors.New("it sent 128-bit IDs")
		}
		runs := make([]firn.Run, 0, len(r.GetIds())+len(r.GetRuns()))
		for _, id := range r.GetIds() {
			runs = append(runs, firn.Run{First: firn.ID(id), Step: 1, Count: 1})
		}
		for _, q := range r.GetRuns() {
			over, way := wayOf(q)
			if _, carry := bits.Add64(q.GetFirst(), way, 0); over || carry != 0 || len(q.GetFirst128()) > 0 {
				return nil, fmt.Errorf("it sent an invalid run of %d IDs", q.GetCount())
			}
			runs = append(runs, firn.Run{First: firn.ID(q.GetFirst()), Step: q.GetStep(), Count: int(q.GetCount())})
		}
		return runs, nil
	})
}

// Forward128 is Forward for 128-bit IDs.
func (f *Forwarder) Forward128(ctx context.Context, t Target, p members.Proof, name string, l firn.Layout, n int) (Answer128, error) {
	return forwardOf(ctx, f, t, p, name, l, n, 128, func(r *firnv1.NextResponse) ([]firn.Run128, error) {
		packed := r.GetIds128()
		if len(r.GetIds()) > 0 || len(packed)%16 != 0 {
			return nil, errors.New("it sent IDs that do not have 128 bits")
		}
		runs := make([]firn.Run128, 0, len(packed)/16+len(r.GetRuns()))
		for ; len(packed) > 0; packed = packed[16:] {
			runs = append(runs, firn.Run128{First: firn.ID128(packed[:16]), Step: 1, Count: 1})
		}
		for _, q := range r.GetRuns() {
			over, way := wayOf(q)
			if over || len(q.GetFirst128()) != 16 {
				return nil, fmt.Errorf("it sent an invalid run of %d IDs", q.GetCount())
			}
			first := firn.ID128(q.GetFirst128())
			hi, lo := first.Uint64s()
			if _, carry := bits.Add64(lo, way, 0); carry != 0 && hi == ^uint64(0) {
				return nil, fmt.Errorf("it sent an invalid run of %d IDs", q.GetCount())
			}
			runs = append(runs, firn.Run128{First: first, Step: q.GetStep(), Count: int(q.GetCount())})
		}
		return runs, nil
	})
}

// wayOf returns the distance from the first ID of a run to its last. It reports
// over if the run repeats an ID or the distance exceeds 64 bits.
func wayOf(q *firnv1.Run) (over bool, way uint64) {
	if q.GetCount() == 0 || q.GetCount() > 1 && q.GetStep() == 0 {
		return true, 0
	}
	hi, lo := bits.Mul64(q.GetStep(), uint64(q.GetCount()-1))
	return hi != 0, lo
}

// forwardOf is Forward for one ID size; read extracts the IDs.
func forwardOf[I firn.AnyID[I]](ctx context.Context, f *Forwarder, t Target, p members.Proof, name string, l firn.Layout, n, size int, read func(*firnv1.NextResponse) ([]firn.RunOf[I], error)) (a AnswerOf[I], err error) {
	if l.Bits() != size {
		return a, fmt.Errorf("layout %s has %d bits, not %d", l, l.Bits(), size)
	}
	if n < 1 || n > service.MaxCount {
		return a, fmt.Errorf("%d IDs cannot be forwarded at once: the limits are 1 and %d", n, service.MaxCount)
	}
	q := &firnv1.ForwardRequest{
		Version: service.HopProtocol, Sequencer: name, Count: uint32(n), Form: firnv1.Form_FORM_IDS,
		Member: t.Member, Caller: p.Member, Record: uint32(p.Record), Nonce: p.Nonce, Call: make([]byte, 16),
	}
	_, _ = rand.Read(q.Call) // never fails
	if n > 1 && l.HasRuns() {
		q.Form = firnv1.Form_FORM_RUNS
	}
	answer, err := f.call(ctx, t, q)
	if err != nil {
		return a, err
	}
	wrong := func(format string, args ...any) (AnswerOf[I], error) {
		return AnswerOf[I]{}, &ForwardError{t, codes.Internal, service.PeerError{Kind: service.Internal, Detail: fmt.Sprintf(format, args...)}}
	}
	if !bytes.Equal(answer.GetCall(), q.Call) {
		return wrong("it sent the answer to another call")
	}
	r := answer.GetNext()
	if text := r.GetLayout(); text != l.String() {
		// The text of another version can describe the same layout.
		if have, err := firn.ParseLayout(text); err != nil || have != l {
			return a, &ForwardError{t, codes.OK, service.PeerError{Kind: service.Recreated, Detail: fmt.Sprintf("it has layout %.100q for sequencer %s, not %s", text, name, l)}}
		}
	}
	runs, err := read(r)
	if err != nil {
		return wrong("%v", err)
	}
	a = AnswerOf[I]{Batch: firn.BatchFromRuns(runs...), Owner: answer.GetOwner()}
	if a.Batch.Len() != n {
		return wrong("it sent %d IDs, not %d", a.Batch.Len(), n)
	}
	return a, nil
}

// call calls a target.
func (f *Forwarder) call(ctx context.Context, t Target, q *firnv1.ForwardRequest) (*firnv1.ForwardResponse, error) {
	if service.Forwarded(ctx) {
		return nil, ErrForwarded
	}
	id := requestid.Of(ctx)
	if id == "" {
		id = requestid.New()
	}
	headers := []string{requestid.Metadata, id}
	if f.c.Token != nil {
		if token := f.c.Token(); token != "" {
			if !t.TLS && !f.c.PlainToken {
				return nil, &ForwardError{t, codes.Unauthenticated, service.PeerError{Kind: service.Unauthorized, Detail: "this server does not send its token to a server without TLS"}}
			}
			headers = append(headers, "authorization", "Bearer "+token)
		}
	}
	k, err := f.link(t.place())
	if err != nil {
		return nil, err
	}
	defer f.unlink(k)
	limited, cancel := context.WithTimeout(ctx, f.c.Limit)
	defer cancel()
	begin := time.Now()
	r, err := firnv1.NewForwardingClient(k.conn).Forward(metadata.NewOutgoingContext(limited, metadata.Pairs(headers...)), q)
	if f.c.Log.Enabled(ctx, slog.LevelDebug) {
		f.c.Log.LogAttrs(ctx, slog.LevelDebug, "forwarded", slog.String("sequencer", q.GetSequencer()), slog.Uint64("count", uint64(q.GetCount())), slog.String("to", t.Address),
			slog.String("status", status.Code(err).String()), slog.Duration("took", time.Since(begin)))
	}
	if err != nil {
		return nil, failedAt(ctx, t, err)
	}
	return r, nil
}

// link returns the connection to an address; a call of unlink must follow.
func (f *Forwarder) link(t place) (*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("%w: the server is shutting down", sequencer.ErrClosed)
	}
	k := f.links[t]
	if k == nil {
		conn, err := f.dial(t)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
		}
		f.makeRoom()
		k = &link{conn: conn}
		f.links[t] = k
	}
	f.calls++
	k.users, k.last = k.users+1, f.calls
	return k, nil
}

func (f *Forwarder) unlink(k *link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k.users--
}

// makeRoom closes the least recently used connection if there are too many.
// Those with calls in progress stay: there are no more of them than calls. The
// caller holds f.mu.
func (f *Forwarder) makeRoom() {
	for len(f.links) >= f.c.MaxTargets {
		var oldest place
		var found *link
		for t, k := range f.links {
			if k.users == 0 && (found == nil || k.last < found.last) {
				oldest, found = t, k
			}
		}
		if found == nil {
			return
		}
		delete(f.links, oldest)
		go found.conn.Close() // unused; Close may wait for its goroutines
	}
}

// dial makes a connection, which connects at its first use.
func (f *Forwarder) dial(t place) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if t.tls {
		if f.c.TLS == nil {
			return nil, errors.New("it has TLS, but this server knows no authority for its certificate")
		}
		c := f.c.TLS.Clone()
		c.NextProtos = nil // only h2: offered http/1.1 too, a server chooses that
		creds = credentials.NewTLS(c)
	}
	slow := backoff.DefaultConfig
	slow.BaseDelay, slow.MaxDelay = 100*time.Millisecond, forwardBackoff
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: slow, MinConnectTimeout: forwardConnect}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: forwardPing, Timeout: forwardConnect}),
		grpc.WithIdleTimeout(forwardIdle),
	}
	if f.c.Dial != nil {
		options = append(options, grpc.WithContextDialer(f.c.Dial))
	}
	options = append(options, f.c.Options...)
	return grpc.NewClient("passthrough:///"+t.address, options...)
}

// A ForwardError is the answer of a Target. errors.Is and As match the error at
// the target, and ErrUnreachable or ErrRefused if its kind is one of these.
type ForwardError struct {
	Target Target // the text does not name it, because clients see the text
	Code   codes.Code
	service.PeerError
}

// Unwrap returns what the error means between the two servers, and at the other
// one.
func (e *ForwardError) Unwrap() []error {
	switch e.Kind {
	case service.HopVersion, service.OtherMember, service.OtherStore, service.NoStore:
		return []error{ErrRefused}
	case service.Draining, service.Cancelled:
		return []error{ErrUnreachable}
	}
	return []error{&e.PeerError}
}

// failedAt converts the error of a call to a target. ctx is the context of the
// caller of the Forwarder.
func failedAt(ctx context.Context, t Target, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	st := status.Convert(err)
	e := &ForwardError{t, st.Code(), service.PeerError{Kind: service.Internal, Detail: st.Message()}}
	ours := false
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if ours = d.GetDomain() == "firn"; ours {
				if k, ok := service.ParseKind(d.GetReason()); ok { // otherwise it is from a later release
					e.Kind = k
				}
			}
		case *errdetails.RetryInfo:
			e.Retry = max(0, d.GetRetryDelay().AsDuration())
		}
	}
	if ours {
		return e
	}
	// Not from Firn: from the connection, or from whatever listens there.
	switch e.Code {
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w: %w", ErrUnreachable, context.DeadlineExceeded)
	case codes.Unavailable, codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case codes.Unimplemented:
		e.Kind, e.Detail = service.HopVersion, "it does not support forwarded calls of this version: run the same release on all servers of a store"
		return e
	}
	return fmt.Errorf("%s: %w", t.Address, err)
}
