//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/stores/sqltest"
)

// serverLayout has 2^20 IDs per millisecond, so that the server is measured and
// not the limit of the format.
const serverLayout = "bits=time:41.node:2.seq:20,unit=1ms,epoch=2026-01-01T00:00:00Z"

// servers measures firn serve, Redis and PostgreSQL.
func (r *run) servers(program string) {
	r.part("resp", func() { r.resp(program) })
	r.part("single", func() { r.single(program) })
	r.part("packed", func() { r.packed(program) })
	r.part("http", func() { r.web(program) })
	r.part("lettuce", func() { r.lettuce(program) })
	r.part("fair", func() { r.fair(program) })
	r.part("clone", r.clone)
	r.part("client", func() { r.client(program) })
	r.part("hazelcast", func() { r.hazelcast(program) })
}

// withFirn starts firn serve with its own directory and further flags, and ends
// it.
func (r *run) withFirn(program string, f func(*firnServer), flags ...string) {
	dir, remove := temporary("store")
	defer remove()
	args := []string{"--store", "dir:" + dir + "/s?create=true&volatile=true"}
	if !slices.Contains(flags, "--layout") {
		args = append(args, "--layout", serverLayout)
	}
	s, err := serve(r.ctx, program, append(args, flags...)...)
	failed(err)
	defer s.end()
	f(s)
}

// withRedis starts a Redis without persistence, and ends it.
func (r *run) withRedis(f func(p *process, address string)) {
	path, err := find("redis-server")
	failed(err)
	dir, remove := temporary("redis")
	defer remove()
	_, port, _ := net.SplitHostPort(freeAddress())
	var log bytes.Buffer
	p, err := start(&log, path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no", "--loglevel", "warning")
	failed(err)
	defer p.end()
	address := "127.0.0.1:" + port
	failed(answers(address))
	f(p, address)
}

// freeAddress returns a loopback address that is currently unused.
func freeAddress() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

// resp measures INCR with Redis' own client, redis-benchmark, with 50
// connections.
func (r *run) resp(program string) {
	if !r.wants("resp/p1/firn:redis") && !r.wants("resp/p16/firn:redis") && !r.wants("resp/p100/firn:redis") {
		return
	}
	tool, err := find("redis-benchmark")
	failed(err)
	r.withRedis(func(redis *process, redisAddress string) {
		r.withFirn(program, func(s *firnServer) {
			for _, c := range []struct {
				pipeline, requests int
				words              []string
			}{
				{1, 40_000, []string{"INCR", "bench"}},
				{16, 500_000, []string{"INCR", "bench"}},
				{100, 1_500_000, []string{"INCR", "bench"}},
				{16, 500_000, []string{"NEXT", "bench"}},
			} {
				name := fmt.Sprintf("resp/p%d", c.pipeline)
				subject := "/firn"
				if c.words[0] == "NEXT" {
					subject = "/firn-next"
				}
				var firns, redises samples // a: k/s, b: µs of processor time per request
				once := func(p *process, address string, to *samples, words []string) error {
					before := p.cpu()
					rps, err := redisBenchmark(r.ctx, tool, address, c.pipeline, c.requests, words)
					if err != nil {
						return err
					}
					to.a = append(to.a, rps/1e3)
					to.b = append(to.b, float64((p.cpu()-before).Microseconds())/float64(c.requests))
					return nil
				}
				for range 7 {
					if err = once(redis, redisAddress, &redises, []string{"INCR", "bench"}); err == nil {
						err = once(s.process, s.address, &firns, c.words)
					}
					if err != nil {
						break
					}
				}
				if err != nil {
					r.skip(name, err.Error())
					continue
				}
				note := "redis-benchmark, 50 connections"
				if subject == "/firn" {
					r.add(name+"/redis", spreadOf(redises.a), "k/s", Figure{Note: note})
				}
				r.add(name+subject, spreadOf(firns.a), "k/s", Figure{Note: note})
				r.add(name+subject+":redis", spreadOf(ratios(firns.a, redises.a)), "x", Figure{})
				if onLinux() {
					if subject == "/firn" {
						r.add(name+"/redis/cpu", spreadOf(redises.b), "us", Figure{Note: "server's processor time per request"})
					}
					r.add(name+subject+"/cpu", spreadOf(firns.b), "us", Figure{Note: "server's processor time per request"})
					r.add(name+subject+"/cpu:redis", spreadOf(ratios(firns.b, redises.b)), "x", Figure{})
				}
			}
		})
	})
}

// redisBenchmark returns the requests per second that redis-benchmark reports.
func redisBenchmark(ctx context.Context, tool, address string, pipeline, requests int, words []string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	args := append([]string{"-h", "127.0.0.1", "-p", port, "-c", "50", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(requests), "-e", "--csv"}, words...)
	out, err := exec.CommandContext(ctx, tool, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w: %s", err, out)
	}
	return redisFigure(string(out))
}

// redisFigure finds requests per second in the CSV output of redis-benchmark,
// and errors.
func redisFigure(out string) (float64, error) {
	i := strings.Index(out, `"test",`)
	if i < 0 || strings.Contains(out, "rror from server") {
		return 0, fmt.Errorf("redis-benchmark printed %q", out)
	}
	rows, err := csv.NewReader(strings.NewReader(out[i:])).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) < 2 || rows[0][1] != "rps" {
		return 0, fmt.Errorf("redis-benchmark printed %q: %w", out, err)
	}
	return strconv.ParseFloat(rows[1][1], 64)
}

// A contestant is a server that returns one ID per call to clients in this
// program.
type contestant struct {
	name string
	p    *process // whose processor time is reported; nil: none
	make func() (caller, error)
	all  []caller
}

// single measures one ID per call, alternating between all protocols.
func (r *run) single(program string) {
	wanted := false
	for _, c := range []string{"c1", "c16"} {
		for _, name := range []string{"firn-resp", "firn-http-text", "firn-http-json", "firn-grpc", "firn-grpc-stream", "redis-incr", "postgres-nextval"} {
			wanted = wanted || r.wants("single/"+c+"/"+name)
		}
	}
	if !wanted {
		return
	}
	r.withFirn(program, func(s *firnServer) {
		ctx := r.ctx
		conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		failed(err)
		defer conn.Close()
		all := []*contestant{
			{name: "firn-resp", p: s.process, make: func() (caller, error) { return respConn(ctx, s.address, respCommand("INCR", "bench"), 1, 0) }},
			{name: "firn-http-text", p: s.process, make: func() (caller, error) {
				return httpConn(ctx, s.address, "/v1/sequencers/bench/next", "text/plain", 0)
			}},
			{name: "firn-http-json", p: s.process, make: func() (caller, error) {
				return httpConn(ctx, s.address, "/v1/sequencers/bench/next", "application/json", 0)
			}},
			{name: "firn-grpc", p: s.process, make: func() (caller, error) {
				return &grpcCaller{ctx: ctx, ids: firnv1.NewIDsClient(conn), count: 1}, nil
			}},
			{name: "firn-grpc-stream", p: s.process, make: func() (caller, error) { return newStreamCaller(ctx, conn, 1) }},
		}
		db, endDB := r.postgres()
		defer endDB()
		if db != nil {
			db.Exec(fmt.Sprintf("\\connect %s\nCREATE SEQUENCE s;\nGRANT USAGE ON SEQUENCE s TO %s;\n", sqltest.Database, sqltest.User))
			all = append(all, &contestant{name: "postgres-nextval", make: func() (caller, error) { return newNextval(ctx, db.URL()) }})
		}
		measure := func() {
			for _, n := range []int{1, 16} {
				r.contest(fmt.Sprintf("single/c%d/", n), n, all)
			}
		}
		if _, err := find("redis-server"); err != nil {
			r.skip("single/redis-incr", err.Error())
			measure()
			return
		}
		r.withRedis(func(p *process, address string) {
			all = append(all, &contestant{name: "redis-incr", p: p, make: func() (caller, error) { return respConn(ctx, address, respCommand("INCR", "bench"), 1, 0) }})
			measure()
		})
	})
}

// postgres starts a PostgreSQL, or logs why it cannot and returns nil.
func (r *run) postgres() (s *sqltest.Server, end func()) {
	f := &fixture{name: "postgres"}
	defer func() {
		if x := recover(); x != nil {
			f.close()
			r.skip("postgres", reason(x))
			s, end = nil, func() {}
		}
	}()
	return sqltest.PostgreSQL(f), f.close
}

// contest lets all of them take turns. It reports no ratios: with few
// connections, the figures depend on whether the system runs both ends on one
// processor, and vary by more than the differences of interest. See resp for
// ratios.
func (r *run) contest(prefix string, n int, all []*contestant) {
	rates := make([]samples, len(all)) // a: k/s, b: µs of processor time per call
	var open []func()
	defer func() {
		for _, c := range open {
			c()
		}
	}()
	for _, c := range all {
		made, closeAll, err := callers(n, c.make)
		failed(err)
		c.all = made
		open = append(open, closeAll)
		_, err = drive(c.all, 50*time.Millisecond)
		failed(err)
	}
	for round := range 9 {
		for k := range all {
			i := (round + k) % len(all) // each in every position
			c := all[i]
			var before time.Duration
			if c.p != nil {
				before = c.p.cpu()
			}
			l, err := drive(c.all, 150*time.Millisecond)
			failed(err)
			rates[i].a = append(rates[i].a, float64(l.calls)/l.took.Seconds()/1e3)
			if c.p != nil {
				rates[i].b = append(rates[i].b, float64((c.p.cpu()-before).Microseconds())/float64(max(l.calls, 1)))
			}
		}
	}
	for i, c := range all {
		r.add(prefix+c.name, spreadOf(rates[i].a), "k/s", Figure{Note: fmt.Sprintf("%d connections", n)})
		if c.p != nil && onLinux() {
			r.add(prefix+c.name+"/cpu", spreadOf(rates[i].b), "us", Figure{Note: "server's processor time per call"})
		}
	}
}

// packed measures 10,000 IDs per call, over four connections.
func (r *run) packed(program string) {
	const count, connections = 10_000, 4
	if !r.wants("packed-10000/firn-resp") && !r.wants("packed-10000/firn-http") && !r.wants("packed-10000/firn-grpc-stream") {
		return
	}
	r.withFirn(program, func(s *firnServer) {
		ctx := r.ctx
		conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		failed(err)
		defer conn.Close()
		all := []*contestant{
			{name: "firn-resp", p: s.process, make: func() (caller, error) {
				return respConn(ctx, s.address, respCommand("NEXTB", "bench", strconv.Itoa(count)), 4, count)
			}},
			{name: "firn-http", p: s.process, make: func() (caller, error) {
				return httpConn(ctx, s.address, fmt.Sprintf("/v1/sequencers/bench/next?count=%d", count), "application/octet-stream", count)
			}},
			{name: "firn-grpc-stream", p: s.process, make: func() (caller, error) { return newStreamCaller(ctx, conn, count) }},
			{name: "firn-grpc", p: s.process, make: func() (caller, error) {
				return &grpcCaller{ctx: ctx, ids: firnv1.NewIDsClient(conn), count: count}, nil
			}},
			{name: "firn-grpc-runs", p: s.process, make: func() (caller, error) {
				return &grpcCaller{ctx: ctx, ids: firnv1.NewIDsClient(conn), count: count, form: firnv1.Form_FORM_RUNS}, nil
			}},
		}
		for _, c := range all {
			name := "packed-10000/" + c.name
			if !r.wants(name) && !r.wants(name+"/cpu") {
				continue
			}
			made, closeAll, err := callers(connections, c.make)
			if err != nil {
				r.skip(name, err.Error())
				continue
			}
			var rate, cpu []float64
			for i := range 12 {
				before := c.p.cpu()
				var l load
				if l, err = drive(made, 250*time.Millisecond); err != nil {
					break
				}
				if i > 0 { // the first warms up
					rate = append(rate, float64(l.ids)/l.took.Seconds()/1e6)
					cpu = append(cpu, float64((c.p.cpu()-before).Nanoseconds())/float64(max(l.ids, 1)))
				}
			}
			closeAll()
			if err != nil {
				r.skip(name, err.Error())
				continue
			}
			r.add(name, spreadOf(rate), "M/s", Figure{Bound: "1049 M/s, 2^20/ms", Note: fmt.Sprintf("%d connections", connections)})
			if onLinux() {
				r.add(name+"/cpu", spreadOf(cpu), "ns", Figure{Note: "server's processor time per ID"})
			}
		}
	})
}

// client measures the Go client's Next: from batches that have arrived, and at
// full speed, where batches grow and their fetches are part of the time.
func (r *run) client(program string) {
	if !r.wants("client/next") && !r.wants("client/next-10000") && !r.wants("client/flat-out") {
		return
	}
	r.withFirn(program, func(s *firnServer) {
		open := func(p *firn.PrefetchOptions) (*client.Client, *client.Sequencer) {
			c := must(client.New(client.Config{Servers: []string{s.url}, Prefetch: p}))
			return c, c.Sequencer("bench")
		}
		draw := func(q *client.Sequencer, n int) {
			var x firn.ID
			for range n {
				x ^= must(q.Next(r.ctx))
			}
			sink.Store(uint64(x))
		}
		for _, count := range []int{1000, 10_000} {
			name := "client/next"
			if count != 1000 {
				name = fmt.Sprintf("client/next-%d", count)
			}
			c, q := open(&firn.PrefetchOptions{Count: count, MaxCount: count})
			burst := count * 9 / 10
			var ns []float64
			err := bounded(r.ctx, 30*time.Second, func(ctx context.Context) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				draw(q, count)
				for range 300 {
					sleep(ctx, 2*time.Millisecond) // the next batch arrives in this time
					waits, before := q.Stats().Waits, threadTime()
					draw(q, burst)
					if took := threadTime() - before; q.Stats().Waits == waits {
						ns = append(ns, float64(took)/float64(burst))
					}
				}
			})
			_ = errors.Join(q.Close(r.ctx), c.Close(r.ctx))
			if err != nil {
				r.skip(name, err.Error())
				continue
			}
			r.add(name, spreadOf(ns), "ns", Figure{Note: fmt.Sprintf("over RESP, batches of %d, drawn in bursts of %d, including the wake-up of the fetching goroutine", count, burst)})
		}

		c, q := open(nil)
		var rate []float64
		err := bounded(r.ctx, 30*time.Second, func(ctx context.Context) {
			for i := range 8 {
				begin := time.Now()
				n := 0
				for time.Since(begin) < 250*time.Millisecond {
					draw(q, 1000)
					n += 1000
				}
				if i > 0 {
					rate = append(rate, float64(n)/time.Since(begin).Seconds()/1e6)
				}
			}
		})
		_ = errors.Join(q.Close(r.ctx), c.Close(r.ctx))
		if err != nil {
			r.skip("client/flat-out", err.Error())
		} else {
			r.add("client/flat-out", spreadOf(rate), "M/s", Figure{Note: "over RESP, one goroutine, batches that grow to 10,000"})
		}
	})
}

// A grpcCaller makes unary calls.
type grpcCaller struct {
	ctx   context.Context
	ids   firnv1.IDsClient
	count uint32
	form  firnv1.Form
}

func (c *grpcCaller) call() (int, error) {
	answer, err := c.ids.Next(c.ctx, &firnv1.NextRequest{Sequencer: "bench", Count: c.count, Form: c.form})
	if err != nil {
		return 0, err
	}
	n := len(answer.GetIds())
	for _, run := range answer.GetRuns() {
		n += int(run.GetCount())
	}
	if n != int(c.count) {
		return 0, fmt.Errorf("%d IDs, want %d", n, c.count)
	}
	return n, nil
}

func (c *grpcCaller) Close() error { return nil }

// A streamCaller gives credit for as many IDs as a response contains, and reads
// one response per call. With more than one ID, it gives credit for four
// responses in advance.
type streamCaller struct {
	stream grpc.BidiStreamingClient[firnv1.StreamRequest, firnv1.StreamResponse]
	cancel context.CancelFunc
	count  int
}

func newStreamCaller(ctx context.Context, conn *grpc.ClientConn, count int) (*streamCaller, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := firnv1.NewIDsClient(conn).Stream(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	c := &streamCaller{stream, cancel, count}
	ahead := 0
	if count > 1 {
		ahead = 4
	}
	if err := stream.Send(&firnv1.StreamRequest{Sequencer: "bench", Credit: uint64(ahead * count), Batch: uint32(count)}); err != nil {
		cancel()
		return nil, err
	}
	return c, nil
}

func (c *streamCaller) call() (int, error) {
	if err := c.stream.Send(&firnv1.StreamRequest{Credit: uint64(c.count)}); err != nil {
		_, err = c.stream.Recv() // returns the reason
		return 0, err
	}
	answer, err := c.stream.Recv()
	if err != nil {
		return 0, err
	}
	if n := len(answer.GetIds()); n < 1 || n > c.count {
		return 0, fmt.Errorf("%d IDs, want 1 to %d", n, c.count)
	}
	return len(answer.GetIds()), nil
}

func (c *streamCaller) Close() error {
	c.cancel()
	return nil
}

// A nextval asks a sequence of PostgreSQL, in a prepared statement.
type nextval struct {
	ctx  context.Context
	conn *pgx.Conn
}

func newNextval(ctx context.Context, url string) (*nextval, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	return &nextval{ctx, conn}, nil
}

func (c *nextval) call() (int, error) {
	var x int64
	if err := c.conn.QueryRow(c.ctx, "SELECT nextval('s')").Scan(&x); err != nil {
		return 0, err
	}
	if x < 1 {
		return 0, fmt.Errorf("nextval is %d", x)
	}
	return 1, nil
}

func (c *nextval) Close() error { return c.conn.Close(context.WithoutCancel(c.ctx)) }
