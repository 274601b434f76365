//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/etcdstore"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/sequencer"
)

// Benchmarks of servers start them on loopback. They are skipped without the
// program; scripts/bench.sh prepares everything, and sets the variables.

// serverLayout has 2^20 IDs per millisecond, so that the server is measured and
// not the limit of the format.
const serverLayout = "bits=time:41.node:2.seq:20,unit=1ms,epoch=2026-01-01T00:00:00Z"

// rounds is the minimum number of measurements of a second or more.
const rounds = 3

// A process is a server that ends with its benchmark.
type process struct {
	*proc.Process
	address string
}

// start starts a server and waits until it accepts connections at address,
// unless that is empty.
func start(b *testing.B, address string, words ...string) *process {
	b.Helper()
	if _, err := exec.LookPath(words[0]); err != nil {
		b.Skip(err)
	}
	p := &process{proc.Start(b, words[0], words[1:]...), address}
	b.Cleanup(p.end)
	for tries := 0; address != ""; tries++ {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		if tries == 100_000 {
			p.end()
			b.Fatalf("%s does not answer: %v: %s", words[0], err, p.Log())
		}
		time.Sleep(200 * time.Microsecond)
	}
	return p
}

func (p *process) end() { _ = p.Stop(syscall.SIGTERM) }

// cpu returns the processor time of all its threads so far.
func (p *process) cpu() time.Duration { return cpu(p.PID()) }

func cpu(pid int) (sum time.Duration) {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range all {
		text, _ := os.ReadFile(path) // none if the thread has ended
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// resident returns its memory in MiB.
func (p *process) resident() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, _ := strconv.ParseFloat(strings.Fields(rest + " 0")[0], 64)
	return kib / 1024
}

func freeAddress() string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	return l.Addr().String()
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// serve starts firn serve with a directory as its store.
func serve(b *testing.B, dir string, flags ...string) *process {
	b.Helper()
	address := freeAddress()
	return start(b, address, append([]string{"../bin/firn", "serve", "--listen", address, "--store", "dir:" + dir + "?create=true&volatile=true"}, flags...)...)
}

func serveWide(b *testing.B) *process {
	b.Helper()
	return serve(b, b.TempDir()+"/s", "--layout", serverLayout)
}

func redis(b *testing.B) *process {
	b.Helper()
	address := freeAddress()
	return start(b, address, "redis-server", "--port", port(address), "--bind", "127.0.0.1", "--save", "", "--dir", b.TempDir())
}

// BenchmarkServerRESP measures INCR with redis-benchmark, 50 connections, on
// firn serve and Redis in turns.
func BenchmarkServerRESP(b *testing.B) {
	tool, err := exec.LookPath("redis-benchmark")
	if err != nil {
		b.Skip(err)
	}
	ours, theirs := serveWide(b), redis(b)
	for pipeline, requests := range map[int]int{1: 40_000, 16: 500_000, 100: 1_500_000} {
		b.Run(fmt.Sprintf("P=%d", pipeline), func(b *testing.B) {
			once := func(p *process) (rate, cpu float64) {
				before := p.cpu()
				out, err := exec.Command(tool, "-p", port(p.address), "-c", "50", "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(requests),
					"-e", "--csv", "INCR", "bench").Output()
				rows, _ := csv.NewReader(bytes.NewReader(out[max(0, bytes.Index(out, []byte(`"test"`))):])).ReadAll()
				if err != nil || len(rows) != 2 || len(rows[1]) < 2 {
					b.Fatalf("redis-benchmark: %v: %s", err, out)
				}
				return must(strconv.ParseFloat(rows[1][1], 64)), float64(p.cpu()-before) / float64(requests)
			}
			versus(b, "redis", ours, theirs, once)
		})
	}
}

// versus measures two servers by turns: their requests a second and the
// processor time of a request, in nanoseconds.
func versus(b *testing.B, peer string, ours, theirs *process, once func(*process) (rate, cpu float64)) {
	var rates, cpus, x, xCPU []float64
	for range max(b.N, rounds) {
		theirRate, theirCPU := once(theirs)
		rate, cpu := once(ours)
		rates, cpus = append(rates, rate), append(cpus, cpu)
		x, xCPU = append(x, rate/theirRate), append(xCPU, cpu/theirCPU)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rates), "req/s")
	b.ReportMetric(median(cpus), "cpu-ns/req")
	b.ReportMetric(median(x), "x-"+peer)
	b.ReportMetric(median(xCPU), "x-"+peer+"-cpu")
}

// BenchmarkServerPacked measures requests for many packed IDs over four
// connections; RESP has four requests in flight.
func BenchmarkServerPacked(b *testing.B) {
	const connections = 4
	s := serveWide(b)
	for _, count := range []int{1000, 10_000} {
		digits := strconv.Itoa(count)
		var resp float64 // IDs/s
		for _, c := range []struct {
			name, request string
			inFlight      int
		}{
			{"resp", fmt.Sprintf("*3\r\n$5\r\nNEXTB\r\n$5\r\nbench\r\n$%d\r\n%s\r\n", len(digits), digits), 4},
			{"http", fmt.Sprintf("POST /v1/sequencers/bench/next?count=%s HTTP/1.1\r\nHost: %s\r\nAccept: application/octet-stream\r\nContent-Length: 0\r\n\r\n", digits, s.address), 1},
		} {
			b.Run(fmt.Sprintf("%s/batch=%d", c.name, count), func(b *testing.B) {
				before, begin := s.cpu(), time.Now()
				var all sync.WaitGroup
				for range connections {
					all.Go(func() {
						if err := takePacked(s.address, c.request, c.inFlight, 8*count, b.N/connections+1); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
				requests := float64(connections * (b.N/connections + 1))
				rate := requests * float64(count) / time.Since(begin).Seconds()
				b.ReportMetric(rate/1e6, "M-IDs/s")
				if c.name == "resp" {
					resp = rate
				} else {
					b.ReportMetric(rate/resp, "x-resp")
				}
				b.ReportMetric(float64(s.cpu()-before)/requests/1e3, "cpu-us/req")
			})
		}
	}
}

// takePacked sends a request n times over a connection, and checks that the IDs
// of the answers increase from one to the next.
func takePacked(address, request string, inFlight, size, n int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r, last := bufio.NewReaderSize(conn, 256<<10), make([]byte, 8)
	for done, sent := 0, 0; done < n; done++ {
		for ; sent < min(n, done+inFlight); sent++ {
			if _, err := io.WriteString(conn, request); err != nil {
				return err
			}
		}
		ids, err := readAnswer(r)
		if err != nil || len(ids) != size || bytes.Compare(last, ids[:8]) >= 0 {
			return fmt.Errorf("%d bytes, want %d, with IDs that increase: %v", len(ids), size, err)
		}
		copy(last, ids[size-8:])
	}
	return nil
}

// readAnswer reads an answer of RESP or HTTP. The body is valid until the next
// one is read.
func readAnswer(r *bufio.Reader) (body []byte, err error) {
	line, err := r.ReadString('\n')
	length := 0
	switch {
	case err != nil:
		return nil, err
	case line[0] == ':':
		return nil, nil
	case line[0] == '$':
		length, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		defer r.Discard(2)
	case strings.HasPrefix(line, "HTTP/1.1 200 "):
		for ; err == nil && line != "\r\n"; line, err = r.ReadString('\n') {
			if rest, ok := strings.CutPrefix(line, "Content-Length: "); ok {
				length, _ = strconv.Atoi(strings.TrimSpace(rest))
			}
		}
	default:
		err = errors.New(line)
	}
	if err == nil {
		body, err = r.Peek(length)
		_, _ = r.Discard(len(body))
	}
	return body, err
}

func sequencerOf(b *testing.B, s *process, prefetch *firn.PrefetchOptions) *client.Sequencer {
	b.Helper()
	c := must(client.New(client.Config{Servers: []string{"http://" + s.address}, Prefetch: prefetch}))
	b.Cleanup(func() { _ = c.Close(background) })
	return c.Sequencer("bench")
}

// BenchmarkServerClient measures the Next of the Go client in bursts. The next
// batch arrives between them, so the processor time includes its fetch.
func BenchmarkServerClient(b *testing.B) {
	s := serveWide(b)
	for _, count := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("batch=%d", count), func(b *testing.B) {
			q := sequencerOf(b, s, &firn.PrefetchOptions{Count: count, MaxCount: count})
			draw, burst, reference := next(q), count*9/10, add()
			draw(count)
			var own, ratios []float64
			for done := 0; done < b.N; {
				time.Sleep(2 * time.Millisecond)
				waits := q.Stats().Waits
				if took := draw(burst); q.Stats().Waits == waits {
					done += burst
					own = append(own, float64(took)/float64(burst))
					ratios = append(ratios, float64(took)/float64(reference(burst)))
				}
			}
			b.ReportMetric(median(own), "ns/op")
			b.ReportMetric(median(ratios), "x-add")
		})
	}
}

// BenchmarkServerJava measures the Java client and other generators of the JVM
// beside AtomicLong, in a JVM each.
func BenchmarkServerJava(b *testing.B) {
	command := strings.Fields(os.Getenv("FIRN_BENCH_PEERS"))
	if len(command) == 0 {
		b.Skip("FIRN_BENCH_PEERS is not set: scripts/bench.sh sets it")
	}
	s := serve(b, b.TempDir()+"/s")
	for _, name := range []string{
		"firn", "cosid-segment-chain", "cosid-millisecond", "uid-generator", "tsid", "tsid-creator", "yitter", "hazelcast-member",
	} {
		b.Run(name, func(b *testing.B) {
			beside(b, "atomic", append(slices.Clip(command), name, "http://"+s.address)...)
		})
	}
}

// BenchmarkServerRust measures ferroid beside an atomic add.
func BenchmarkServerRust(b *testing.B) {
	program := os.Getenv("FIRN_BENCH_FERROID")
	if program == "" {
		b.Skip("FIRN_BENCH_FERROID is not set: scripts/bench.sh sets it")
	}
	for _, name := range []string{"basic", "atomic", "lock"} {
		b.Run(name, func(b *testing.B) { beside(b, "add", program, name) })
	}
}

// beside runs a peer that prints its ratio to a reference with one thread and
// with two, and how far it is ahead of the clock after a second flat out.
func beside(b *testing.B, reference string, command ...string) {
	var one, two, ahead []float64
	for range max(b.N, rounds) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stderr = io.Discard
		out, err := cmd.Output()
		var x, y, ms float64
		if _, scan := fmt.Sscan(string(out), &x, &y, &ms); err != nil || scan != nil {
			b.Fatalf("%v: %v, %v: %s", command, err, scan, out)
		}
		one, two, ahead = append(one, x), append(two, y), append(ahead, ms)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(one), "x-"+reference)
	b.ReportMetric(median(two), "x-"+reference+"-2")
	b.ReportMetric(median(ahead), "ms-ahead")
}

// TestMain serves a bare handler, as a peer, if FIRN_BENCH_BARE has an address.
func TestMain(m *testing.M) {
	address := os.Getenv("FIRN_BENCH_BARE")
	if address == "" {
		os.Exit(m.Run())
	}
	panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ids":["118483740973907968"]}`)
	})))
}

// BenchmarkServerHTTP measures single requests over HTTP beside a handler that
// always writes the same ID, by turns.
func BenchmarkServerHTTP(b *testing.B) {
	ours, address := serveWide(b), freeAddress()
	b.Setenv("FIRN_BENCH_BARE", address)
	bare := start(b, address, os.Args[0])
	versus(b, "bare", ours, bare, asking(b, postNext))
}

// asking returns what versus compares: as many requests as callers get answered
// in a second.
func asking(b *testing.B, request string) func(*process) (rate, cpu float64) {
	return func(p *process) (rate, cpu float64) {
		before, begin := p.cpu(), time.Now()
		rate = capacity(connect(b, p.address, request))
		return rate, float64(p.cpu()-before) / (rate * time.Since(begin).Seconds())
	}
}

// BenchmarkServerIssueLog measures a server with an issue log beside one
// without, by turns.
func BenchmarkServerIssueLog(b *testing.B) {
	with, without := serve(b, b.TempDir()+"/s", "--layout", serverLayout, "--issue-log", b.TempDir()+"/ids.log"), serveWide(b)
	for name, request := range map[string]string{
		"resp/n=1": "INCR bench\r\n", "resp/n=100": "NEXTB bench 100\r\n",
		"http/n=1": postNext, "http/n=100": strings.Replace(postNext, "next", "next?count=100", 1),
	} {
		b.Run(name, func(b *testing.B) { versus(b, "without", with, without, asking(b, request)) })
	}
}

// BenchmarkServerLettuce measures INCR with Redis' client for Java, which asks
// firn serve and Redis by turns.
func BenchmarkServerLettuce(b *testing.B) {
	command := strings.Fields(os.Getenv("FIRN_BENCH_LETTUCE"))
	if len(command) == 0 {
		b.Skip("FIRN_BENCH_LETTUCE is not set: scripts/bench.sh sets it")
	}
	ours, theirs := serveWide(b), redis(b)
	out, err := exec.Command(command[0], append(command[1:], port(ours.address), port(theirs.address), "15")...).Output()
	if err != nil {
		b.Fatal(err)
	}
	x := make(map[string][]float64)
	for line := range strings.Lines(string(out)) {
		var mode string
		var a, b float64
		must(fmt.Sscan(line, &mode, &a, &b))
		x[mode] = append(x[mode], a/b)
	}
	for mode, all := range x {
		b.ReportMetric(median(all), "x-redis-"+mode)
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkServerStart measures the time from the start of firn serve to the
// first ID over HTTP, in a directory that has the sequencer.
func BenchmarkServerStart(b *testing.B) {
	dir := b.TempDir() + "/s"
	var ms []float64
	for range b.N + 1 { // the first creates the sequencer
		begin := time.Now()
		s := serve(b, dir)
		resp := must(http.Post("http://"+s.address+"/v1/sequencers/orders/next", "", nil))
		body := must(io.ReadAll(resp.Body))
		ms = append(ms, float64(time.Since(begin))/1e6)
		resp.Body.Close()
		s.end()
		if resp.StatusCode != http.StatusOK {
			b.Fatalf("%s: %s", resp.Status, body)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ms[1:]), "ms/first-ID")
}

// BenchmarkServerIdle measures a server that has made one ID, for ten seconds.
func BenchmarkServerIdle(b *testing.B) {
	s := serve(b, b.TempDir()+"/s")
	must(sequencerOf(b, s, &firn.PrefetchOptions{Count: 1, MaxCount: 1}).Next(background))
	time.Sleep(time.Second)
	for range b.N {
		before := s.cpu()
		time.Sleep(10 * time.Second)
		b.ReportMetric(100*float64(s.cpu()-before)/1e10, "%-core")
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(s.resident(), "MiB")
}

// BenchmarkServerConnections measures the memory of a connection that is idle
// after one request: of 9,000 to firn serve, over RESP and HTTP, and to Redis.
func BenchmarkServerConnections(b *testing.B) {
	const count = 9000
	kib := func(p *process, request string) float64 {
		before := p.resident()
		for range count {
			conn := must(net.Dial("tcp", p.address))
			defer conn.Close()
			must(io.WriteString(conn, request))
			must(conn.Read(make([]byte, 4096))) // the whole answer, which is short
		}
		return (p.resident() - before) * 1024 / count
	}
	incr := "*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n"
	peer := kib(redis(b), incr)
	for name, request := range map[string]string{"resp": incr, "http": "POST /v1/sequencers/orders/next HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		b.Run(name, func(b *testing.B) {
			var all float64
			for range b.N {
				all += kib(serveWide(b), request)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(all/float64(b.N), "KiB/conn")
			b.ReportMetric(all/float64(b.N)/peer, "x-redis")
		})
	}
}

// etcd starts three members and returns a function that opens a store there.
func etcd(b *testing.B) func(prefix string) grant.Store {
	b.Helper()
	program := os.Getenv("FIRN_ETCD")
	if program == "" {
		b.Skip("FIRN_ETCD is not set: scripts/bench.sh sets it")
	}
	var clients, peers, members []string
	for i := range 3 {
		clients, peers = append(clients, freeAddress()), append(peers, "http://"+freeAddress())
		members = append(members, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	var all sync.WaitGroup
	for i := range 3 {
		own := "http://" + clients[i]
		dir := b.TempDir()
		all.Go(func() {
			start(b, clients[i], program, "--name", fmt.Sprintf("m%d", i), "--data-dir", dir, "--listen-client-urls", own, "--advertise-client-urls", own,
				"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(members, ","), "--log-level", "error")
		})
	}
	all.Wait()
	return func(prefix string) grant.Store {
		s := must(etcdstore.Open(background, &etcdstore.Options{Endpoints: clients, Prefix: prefix, Timeout: time.Minute}))
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// BenchmarkServerJoin measures how long it takes until 1,000 nodes that start
// at once over 20 connections to etcd have an ID each, and their processor time.
func BenchmarkServerJoin(b *testing.B) {
	const nodes, connections = 1000, 20
	open := etcd(b)
	layout := firn.MustParseLayout("bits=time:41.node:13.seq:9,unit=1ms,epoch=2026-01-01T00:00:00Z")
	var seconds, cpus []float64
	for round := range max(b.N, rounds) {
		var stores [connections]grant.Store
		for i := range stores {
			stores[i] = open(fmt.Sprintf("join-%d-%d", b.N, round))
		}
		must(grant.Create(background, stores[0], "join", grant.DefaultConfig(nil, layout, nil), nil))
		var opened [nodes]*sequencer.Sequencer
		var numbers sync.Map
		var all sync.WaitGroup
		begin, before := time.Now(), processorTime()
		for i := range nodes {
			all.Go(func() {
				err := firn.ErrUnavailable
				for errors.Is(err, firn.ErrUnavailable) {
					opened[i], err = sequencer.Open(background, stores[i%connections], "join", &sequencer.Options{WaitForNode: true})
				}
				if err != nil {
					b.Error(err)
					return
				}
				p := must(layout.Decompose(must(opened[i].Next(background))))
				if _, twice := numbers.LoadOrStore(p.Node, i); twice {
					b.Errorf("node %d twice", p.Node)
				}
			})
		}
		all.Wait()
		seconds, cpus = append(seconds, time.Since(begin).Seconds()), append(cpus, (processorTime()-before).Seconds())
		for _, q := range opened {
			if q != nil {
				all.Go(func() { _ = q.Close(background) })
			}
		}
		all.Wait()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(seconds), "s/join")
	b.ReportMetric(median(cpus), "cpu-s/join")
}

// BenchmarkServerCAS measures a compare-and-swap of about the length of a
// record, by one writer.
func BenchmarkServerCAS(b *testing.B) {
	cas := func(b *testing.B, s grant.Store) {
		var old []byte
		for n := 0; b.Loop(); n++ {
			next := fmt.Appendf(nil, "%0200d", n)
			if ok, err := s.CAS(background, fmt.Sprintf("bench/%p", b), old, next); err != nil || !ok {
				b.Fatal(ok, err)
			}
			old = next
		}
	}
	b.Run("directory", func(b *testing.B) {
		s := must(dirstore.Open(background, b.TempDir()+"/s", &dirstore.Options{Create: true, AllowVolatile: true}))
		defer s.Close()
		cas(b, s)
	})
	b.Run("etcd", func(b *testing.B) { cas(b, etcd(b)("cas")) })
}
