package main

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
	"sync"
	"sync/atomic"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// A bencher is what the command bench was told.
type bencher struct {
	servers     []string
	protocol    string
	sequencer   string
	token       string
	connections uint64
	count       uint64
	pipeline    uint64
	duration    time.Duration
	asJSON      bool
}

func newBench(a *app) *cobra.Command {
	b := bencher{servers: []string{"http://" + defaultListen}, protocol: "http", sequencer: "bench", connections: 8, count: 1, pipeline: 1, duration: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "bench [--server URL] [--protocol PROTOCOL] [--connections N] [--count N]",
		Short: "Load a server, and look for duplicates",
		Long: `Bench takes IDs from servers as fast as they are given, over N connections, and says how
many there were, how long requests took, and whether any ID came twice: all are kept and
compared at the end, so it takes 16 bytes of memory for each request or more. It exits with
1 if there is a duplicate. A request that fails is counted and tried again.

It takes IDs that are then used by nobody: give it a sequencer of its own.`,
		Example: "  firn bench\n  firn bench --protocol resp --pipeline 16\n  firn bench --server http://a:3476,http://b:3476 --count 10000 --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return b.run(cmd.Context(), a) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&b.servers, "server", b.servers, "`URL` of a server, or several; https:// is with TLS")
	f.Var(&value[string]{&b.protocol, parseProtocol, func(s string) string { return s }, "PROTOCOL"}, "protocol", "http, grpc or resp")
	complete(cmd, "protocol", func() []string { return []string{"http", "grpc", "resp"} })
	f.StringVar(&b.sequencer, "sequencer", b.sequencer, "`NAME` to take IDs of")
	f.StringVar(&b.token, "token", "", "`TOKEN` that may take them")
	numberVar(cmd, &b.connections, "connections", "", "N", "how many connections, each with one request at a time")
	numberVar(cmd, &b.count, "count", "", "N", "IDs in a request")
	numberVar(cmd, &b.pipeline, "pipeline", "", "N", "requests at a time in a connection, for resp")
	f.DurationVar(&b.duration, "duration", b.duration, "how long")
	f.BoolVar(&b.asJSON, "json", false, "print the result as JSON")
	return cmd
}

func parseProtocol(s string) (string, error) {
	if s != "http" && s != "grpc" && s != "resp" {
		return "", errors.New("it is http, grpc or resp")
	}
	return s, nil
}

// check finds what is wrong with the flags.
func (b *bencher) check() ([]*url.URL, error) {
	switch {
	case b.connections < 1 || b.connections > 10_000:
		return nil, misuse("", "--connections %d: it is a number from 1 to 10000", b.connections)
	case b.count < 1 || b.count > service.MaxCount:
		return nil, misuse("", "--count %d: it is a number from 1 to %d", b.count, service.MaxCount)
	case b.pipeline < 1 || b.pipeline > 1000:
		return nil, misuse("", "--pipeline %d: it is a number from 1 to 1000", b.pipeline)
	case b.pipeline > 1 && b.protocol != "resp":
		return nil, misuse("", "--pipeline is for --protocol resp")
	case b.duration <= 0 || b.duration > 24*time.Hour:
		return nil, misuse("", "--duration %v: it is more than 0, and no more than 24h", b.duration)
	}
	if err := service.CheckName(b.sequencer); err != nil {
		return nil, misuse("", "--sequencer: %w", err)
	}
	var all []*url.URL
	for _, text := range b.servers {
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, misuse("it is http://HOST:PORT or https://HOST:PORT", "--server %q", text)
		}
		if u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), "3476")
		}
		all = append(all, u)
	}
	if len(all) == 0 {
		return nil, misuse("it is http://HOST:PORT", "--server: there is none")
	}
	return all, nil
}

// A taker takes IDs: as many requests at a time as the pipeline has. What it returns is
// packed, 8 or 16 bytes an ID, and belongs to it until the next call.
type taker interface {
	take(ctx context.Context) (packed [][]byte, err error)
	close()
}

// wideSpan is IDs that follow each other by one.
type wideSpan struct{ hi, first, last uint64 }

// A loader is one connection's work.
type loader struct {
	server *url.URL
	t      taker // nil while there is no connection
	spans  []wideSpan
	times  *hdr.Histogram // of requests, in microseconds
	failed uint64
	err    error // the last one
}

const longest = 60_000_000 // microseconds

// run loads the servers.
func (b *bencher) run(ctx context.Context, a *app) error {
	servers, err := b.check()
	if err != nil {
		return err
	}
	loaders := make([]*loader, b.connections)
	var requests, ids atomic.Uint64
	var all sync.WaitGroup
	// What is measured is not how long it takes to connect.
	for i := range loaders {
		l := &loader{server: servers[i%len(servers)], times: hdr.New(1, longest, 3)}
		loaders[i] = l
		defer l.close()
		all.Go(func() { b.request(ctx, l) })
	}
	all.Wait()
	begin := time.Now()
	for _, l := range loaders {
		all.Go(func() { b.load(ctx, l, begin.Add(b.duration), &requests, &ids) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	b.watch(a, done, &requests, &ids)
	took := time.Since(begin)

	times := hdr.New(1, longest, 3)
	var spans []wideSpan
	var failures uint64
	var failure error
	for _, l := range loaders {
		times.Merge(l.times)
		spans = append(spans, l.spans...)
		failures += l.failed
		if l.err != nil {
			failure = l.err
		}
		l.spans = nil
	}
	if requests.Load() == 0 {
		if failure == nil {
			failure = context.Cause(ctx) // it was interrupted
		}
		return failed(b.hint(failure), "no IDs: %w", failure)
	}
	duplicates := countDuplicates(spans)
	if err := b.report(a, took, requests.Load(), ids.Load(), failures, failure, duplicates, times); err != nil {
		return err
	}
	if duplicates > 0 {
		return &exitError{exitNo, fmt.Errorf("%s IDs came twice", group(duplicates)), "do two servers run with the same static node, or with different stores? Was a store copied?"}
	}
	return nil
}

// hint is what to do where no IDs came.
func (b *bencher) hint(err error) string {
	code := status.Code(err) // Unknown where it is not of gRPC
	var web *webError
	if errors.As(err, &web) {
		switch web.status {
		case http.StatusUnauthorized:
			code = codes.Unauthenticated
		case http.StatusForbidden:
			code = codes.PermissionDenied
		}
	}
	var resp respError
	if errors.As(err, &resp) {
		switch word, _, _ := strings.Cut(string(resp), " "); word {
		case "-NOAUTH", "-WRONGPASS":
			code = codes.Unauthenticated
		case "-NOPERM":
			code = codes.PermissionDenied
		}
	}
	switch {
	case code == codes.Unauthenticated && b.token == "":
		return "the server wants to know who asks: --token TOKEN, such as firn token new prints"
	case code == codes.Unauthenticated:
		return "the server does not know this --token, or it has expired"
	case code == codes.PermissionDenied && b.token == "":
		return "--token TOKEN is for one that may take IDs of " + b.sequencer + "; --sequencer names another"
	case code == codes.PermissionDenied:
		return "this --token may not take IDs of " + b.sequencer + "; --sequencer names another"
	}
	return "is firn serve running there, and does it speak " + b.protocol + "?"
}

// A webError is an answer of HTTP that has no IDs.
type webError struct {
	status int
	text   string
}

func (e *webError) Error() string { return e.text }

// A respError is an answer of RESP that has no IDs.
type respError string

func (e respError) Error() string { return string(e) }

// patience is how long a request may take, with connecting.
const patience = 10 * time.Second

// load makes requests until end, and at least one.
func (b *bencher) load(ctx context.Context, l *loader, end time.Time, requests, ids *atomic.Uint64) {
	for more := true; more && ctx.Err() == nil; more = time.Now().Before(end) {
		begin := time.Now()
		n, answers := b.request(ctx, l)
		if answers == 0 {
			continue
		}
		micros := min(max(time.Since(begin).Microseconds(), 1), longest)
		_ = l.times.RecordValues(micros, int64(answers))
		requests.Add(uint64(answers))
		ids.Add(uint64(n))
	}
}

// request makes as many requests as the pipeline has, and notes the IDs. Without an
// answer it counts a failure, and waits a little.
func (b *bencher) request(ctx context.Context, l *loader) (ids, answers int) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var packed [][]byte
	var err error
	if l.t == nil {
		l.t, err = b.connect(within, l.server)
	}
	if err == nil {
		packed, err = l.t.take(within)
	}
	for _, p := range packed {
		if err == nil {
			var n int
			n, err = l.note(p, int(b.count))
			ids += n
		}
	}
	if err == nil {
		return ids, len(packed)
	}
	l.close()
	if ctx.Err() == nil { // what an interrupt cuts off is no failure
		l.fail(ctx, err)
	}
	return 0, 0
}

func (l *loader) close() {
	if l.t != nil {
		l.t.close()
		l.t = nil
	}
}

// fail counts a failure, and waits a little.
func (l *loader) fail(ctx context.Context, err error) {
	l.failed++
	l.err = err
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// note notes the IDs of an answer.
func (l *loader) note(packed []byte, count int) (n int, err error) {
	size := len(packed) / count
	if len(packed) != size*count || size != 8 && size != 16 {
		return 0, fmt.Errorf("an answer has %d bytes, which are not %d IDs", len(packed), count)
	}
	for ; len(packed) > 0; packed = packed[size:] {
		var hi uint64
		if size == 16 {
			hi = binary.BigEndian.Uint64(packed)
		}
		lo := binary.BigEndian.Uint64(packed[size-8:])
		if last := len(l.spans) - 1; n > 0 && l.spans[last].hi == hi && l.spans[last].last+1 == lo && lo != 0 {
			l.spans[last].last = lo
		} else {
			l.spans = append(l.spans, wideSpan{hi, lo, lo})
		}
		n++
	}
	return n, nil
}

// countDuplicates counts IDs that were there before.
func countDuplicates(spans []wideSpan) (n uint64) {
	slices.SortFunc(spans, func(a, b wideSpan) int {
		switch {
		case a.hi != b.hi && a.hi < b.hi, a.hi == b.hi && a.first < b.first:
			return -1
		case a == b, a.hi == b.hi && a.first == b.first:
			return 0
		}
		return 1
	})
	for i := 1; i < len(spans); i++ {
		before, s := spans[i-1], &spans[i]
		if s.hi != before.hi || s.first > before.last {
			continue
		}
		n += min(s.last, before.last) - s.first + 1
		s.last = max(s.last, before.last)
	}
	return n
}

// watch shows what is done, each second, until done is closed.
func (b *bencher) watch(a *app, done <-chan struct{}, requests, ids *atomic.Uint64) {
	terminal := a.lookOf(a.stderr).terminal
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before, beforeRequests uint64
	for second := 1; ; second++ {
		select {
		case <-done:
			if terminal {
				fmt.Fprint(a.stderr, "\r\x1b[K")
			}
			return
		case <-tick.C:
			i, r := ids.Load(), requests.Load()
			if terminal {
				fmt.Fprintf(a.stderr, "\r\x1b[K%d s of %v: %s IDs/s in %s requests/s", second, b.duration, group(i-before), group(r-beforeRequests))
			}
			before, beforeRequests = i, r
		}
	}
}

// report prints the result.
func (b *bencher) report(a *app, took time.Duration, requests, ids, failures uint64, failure error, duplicates uint64, times *hdr.Histogram) error {
	quantile := func(q float64) time.Duration { return time.Duration(times.ValueAtQuantile(q)) * time.Microsecond }
	if b.asJSON {
		v := struct {
			Protocol    string  `json:"protocol"`
			Connections uint64  `json:"connections"`
			Count       uint64  `json:"count"`
			Pipeline    uint64  `json:"pipeline"`
			Seconds     float64 `json:"seconds"`
			Requests    uint64  `json:"requests"`
			IDs         uint64  `json:"ids"`
			PerSecond   float64 `json:"ids_per_second"`
			Failures    uint64  `json:"failures"`
			Failure     string  `json:"last_failure,omitempty"`
			Duplicates  uint64  `json:"duplicates"`
			Micros      struct {
				P50  int64 `json:"p50"`
				P90  int64 `json:"p90"`
				P99  int64 `json:"p99"`
				P999 int64 `json:"p999"`
				Max  int64 `json:"max"`
			} `json:"latency_us"`
		}{
			Protocol: b.protocol, Connections: b.connections, Count: b.count, Pipeline: b.pipeline, Seconds: took.Seconds(),
			Requests: requests, IDs: ids, PerSecond: float64(ids) / took.Seconds(), Failures: failures, Duplicates: duplicates,
		}
		if failure != nil {
			v.Failure = failure.Error()
		}
		v.Micros.P50, v.Micros.P90, v.Micros.P99 = times.ValueAtQuantile(50), times.ValueAtQuantile(90), times.ValueAtQuantile(99)
		v.Micros.P999, v.Micros.Max = times.ValueAtQuantile(99.9), times.Max()
		return a.printJSON(v)
	}
	var r rows
	r.add("IDs", "%s in %.1f s: %s per second", group(ids), took.Seconds(), group(uint64(float64(ids)/took.Seconds())))
	r.add("requests", "%s: %s per second, over %d connections of %s", group(requests), group(uint64(float64(requests)/took.Seconds())), b.connections, b.protocol)
	r.add("latency", "p50 %v, p90 %v, p99 %v, p99.9 %v, longest %v", quantile(50), quantile(90), quantile(99), quantile(99.9), time.Duration(times.Max())*time.Microsecond)
	if failures > 0 {
		r.add("failed", "%s; the last: %v", group(failures), failure)
	}
	r.add("duplicates", "%s", map[bool]string{true: "none", false: group(duplicates)}[duplicates == 0])
	r.print(a.stdout, a.lookOf(a.stdout))
	return nil
}

// connect makes one connection.
func (b *bencher) connect(ctx context.Context, server *url.URL) (taker, error) {
	secure := server.Scheme == "https"
	switch b.protocol {
	case "grpc":
		creds := insecure.NewCredentials()
		if secure {
			creds = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
		}
		conn, err := grpc.NewClient(server.Host, grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
		if err != nil {
			return nil, err
		}
		return &rpcTaker{b: b, conn: conn, ids: firnv1.NewIDsClient(conn)}, nil
	case "resp":
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", server.Host)
		if err != nil {
			return nil, err
		}
		if secure {
			conn = tls.Client(conn, &tls.Config{ServerName: server.Hostname(), MinVersion: tls.VersionTLS12})
		}
		t, err := newRESPTaker(ctx, b, conn)
		if err != nil {
			return nil, err // no taker that is a nil pointer
		}
		return t, nil
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}
	return &webTaker{b: b, transport: transport, target: server.Scheme + "://" + server.Host + "/v1/sequencers/" + b.sequencer + "/next?count=" + strconv.FormatUint(b.count, 10)}, nil
}

// A webTaker asks over HTTP.
type webTaker struct {
	b         *bencher
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
	if t.b.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.b.token)
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
		return nil, fmt.Errorf("an answer says that it has %d bytes", size)
	}
	t.buf = slices.Grow(t.buf[:0], int(size))[:size]
	if _, err := io.ReadFull(resp.Body, t.buf); err != nil {
		return nil, err
	}
	return [][]byte{t.buf}, nil
}

func (t *webTaker) close() { t.transport.CloseIdleConnections() }

// An rpcTaker asks over gRPC.
type rpcTaker struct {
	b    *bencher
	conn *grpc.ClientConn
	ids  firnv1.IDsClient
	buf  []byte
}

func (t *rpcTaker) take(ctx context.Context) ([][]byte, error) {
	if t.b.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+t.b.token)
	}
	r, err := t.ids.Next(ctx, &firnv1.NextRequest{Sequencer: t.b.sequencer, Count: uint32(t.b.count)})
	if err != nil {
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

// A respTaker asks over RESP, with several requests on their way.
type respTaker struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	bufs    [][]byte
}

func newRESPTaker(ctx context.Context, b *bencher, conn net.Conn) (*respTaker, error) {
	t := &respTaker{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), bufs: make([][]byte, b.pipeline)}
	defer t.until(ctx)()
	if b.token != "" {
		if _, err := fmt.Fprintf(conn, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", len(b.token), b.token); err != nil {
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
	count := strconv.FormatUint(b.count, 10)
	one := fmt.Sprintf("*3\r\n$5\r\nNEXTB\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(b.sequencer), b.sequencer, len(count), count)
	t.request = []byte(strings.Repeat(one, int(b.pipeline)))
	return t, nil
}

// until lets reading and writing fail once ctx is done, until what it returns is called.
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
