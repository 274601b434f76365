package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// A taker takes IDs, with as many concurrent requests as the pipeline has. It
// returns packed IDs of 8 or 16 bytes in a buffer that it owns until the next
// call.
type taker interface {
	take(ctx context.Context) (packed [][]byte, err error)
	close()
}

// connect opens a connection.
func (o *Options) connect(ctx context.Context, server *url.URL) (taker, error) {
	secure := server.Scheme == "https"
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	switch o.Protocol {
	case "grpc":
		var shake handshake
		creds := insecure.NewCredentials()
		if secure {
			creds = &watchedTLS{credentials.NewTLS(config), &shake}
		}
		conn, err := grpc.NewClient(server.Host, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
		if err != nil {
			return nil, err
		}
		return &rpcTaker{o: o, conn: conn, ids: firnv1.NewIDsClient(conn), shake: &shake}, nil
	case "resp":
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", server.Host)
		if err != nil {
			return nil, err
		}
		if secure {
			config.ServerName = server.Hostname()
			conn = tls.Client(conn, config)
		}
		t, err := newRESPTaker(ctx, o, conn)
		if err != nil {
			return nil, err // not a taker with a nil pointer
		}
		return t, nil
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true, TLSClientConfig: config}
	return &webTaker{o: o, transport: transport, target: server.Scheme + "://" + server.Host + "/v1/sequencers/" + o.Sequencer + "/next?count=" + strconv.Itoa(o.Count)}, nil
}

// A webTaker takes IDs over HTTP.
type webTaker struct {
	o         *Options
	transport *http.Transport
	target    string
	buf       []byte
}

func (t *webTaker) take(ctx context.Context) ([][]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.target, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/octet-stream")
	if t.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+t.o.Token)
	}
	resp, err := t.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return nil, &webError{resp.StatusCode, resp.Status + ": " + strings.TrimSpace(string(text))}
	}
	size := resp.ContentLength
	if size < 0 || size > 16*service.MaxCount {
		return nil, fmt.Errorf("the answer announces %d bytes", size)
	}
	t.buf = slices.Grow(t.buf[:0], int(size))[:size]
	if _, err := io.ReadFull(resp.Body, t.buf); err != nil {
		return nil, err
	}
	return [][]byte{t.buf}, nil
}

func (t *webTaker) close() { t.transport.CloseIdleConnections() }

// An rpcTaker takes IDs over gRPC.
type rpcTaker struct {
	o     *Options
	conn  *grpc.ClientConn
	ids   firnv1.IDsClient
	shake *handshake
	buf   []byte
}

// A handshake has the error of the last TLS handshake, of which gRPC returns
// only the text. With TLS 1.3 a server rejects a certificate after the
// handshake.
type handshake struct{ err atomic.Pointer[error] }

// watchedTLS records the errors of handshakes.
type watchedTLS struct {
	credentials.TransportCredentials
	last *handshake
}

// ClientHandshake records an error.
func (w *watchedTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		w.last.err.Store(&err)
		return nil, nil, err
	}
	return &watchedConn{conn, w.last}, info, nil
}

// A watchedConn records the errors of reads.
type watchedConn struct {
	net.Conn
	last *handshake
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && err != io.EOF {
		c.last.err.Store(&err)
	}
	return n, err
}

// Clone makes a copy that records errors in the same place.
func (w *watchedTLS) Clone() credentials.TransportCredentials {
	return &watchedTLS{w.TransportCredentials.Clone(), w.last}
}

func (t *rpcTaker) take(ctx context.Context) ([][]byte, error) {
	if t.o.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+t.o.Token)
	}
	r, err := t.ids.Next(ctx, &firnv1.NextRequest{Sequencer: t.o.Sequencer, Count: uint32(t.o.Count)})
	if err != nil {
		if shake := t.shake.err.Load(); shake != nil && status.Code(err) == codes.Unavailable {
			err = *shake
		}
		return nil, err
	}
	if len(r.Ids128) > 0 {
		return [][]byte{r.Ids128}, nil
	}
	t.buf = t.buf[:0]
	for _, id := range r.Ids {
		t.buf = binary.BigEndian.AppendUint64(t.buf, id)
	}
	return [][]byte{t.buf}, nil
}

func (t *rpcTaker) close() { _ = t.conn.Close() }

// A respTaker takes IDs over RESP, with several requests in flight.
type respTaker struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	bufs    [][]byte
}

func newRESPTaker(ctx context.Context, o *Options, conn net.Conn) (*respTaker, error) {
	t := &respTaker{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), bufs: make([][]byte, o.Pipeline)}
	defer t.until(ctx)()
	if o.Token != "" {
		if _, err := fmt.Fprintf(conn, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", len(o.Token), o.Token); err != nil {
			t.close()
			return nil, err
		}
		line, err := t.in.ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "+") {
			err = respError(strings.TrimSpace(line))
		}
		if err != nil {
			t.close()
			return nil, err
		}
	}
	count := strconv.Itoa(o.Count)
	one := fmt.Sprintf("*3\r\n$5\r\nNEXTB\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(o.Sequencer), o.Sequencer, len(count), count)
	t.request = []byte(strings.Repeat(one, o.Pipeline))
	return t, nil
}

// until makes reads and writes fail once ctx is done, until stop is called.
func (t *respTaker) until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = t.conn.SetDeadline(time.Unix(1, 0)) })
}

func (t *respTaker) take(ctx context.Context) ([][]byte, error) {
	defer t.until(ctx)()
	if _, err := t.conn.Write(t.request); err != nil {
		return nil, err
	}
	for i := range t.bufs {
		line, err := t.in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
		if err != nil || line[0] != '$' || size < 0 || size > 16*service.MaxCount {
			return nil, respError(strings.TrimSpace(line))
		}
		t.bufs[i] = slices.Grow(t.bufs[i][:0], size+2)[:size+2]
		if _, err := io.ReadFull(t.in, t.bufs[i]); err != nil {
			return nil, err
		}
		t.bufs[i] = t.bufs[i][:size]
	}
	return t.bufs, nil
}

func (t *respTaker) close() { _ = t.conn.Close() }

// A webError is an HTTP answer without IDs.
type webError struct {
	status int
	text   string
}

func (e *webError) Error() string { return e.text }

// A respError is a RESP answer without IDs.
type respError string

func (e respError) Error() string { return string(e) }

// CodeOf returns the gRPC code of an error of Run: codes.Unauthenticated or
// codes.PermissionDenied if a server answered that, over any protocol.
func CodeOf(err error) codes.Code {
	if web, ok := errors.AsType[*webError](err); ok {
		switch web.status {
		case http.StatusUnauthorized:
			return codes.Unauthenticated
		case http.StatusForbidden:
			return codes.PermissionDenied
		}
	}
	if resp, ok := errors.AsType[respError](err); ok {
		switch word, _, _ := strings.Cut(string(resp), " "); word {
		case "-NOAUTH", "-WRONGPASS":
			return codes.Unauthenticated
		case "-NOPERM":
			return codes.PermissionDenied
		}
	}
	return status.Code(err) // Unknown if it is not from gRPC
}
