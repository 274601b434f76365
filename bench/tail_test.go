//go:build linux

package bench

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
)

// percentiles reports how long calls took, in microseconds.
func percentiles(b *testing.B, took []time.Duration) {
	b.ReportMetric(0, "ns/op")
	for unit, part := range map[string]float64{"p50-us": 0.5, "p99-us": 0.99, "p99.9-us": 0.999, "p99.99-us": 0.9999, "max-us": 1} {
		b.ReportMetric(percentile(took, part), unit)
	}
}

// percentile sorts the times and returns one in microseconds.
func percentile(took []time.Duration, part float64) float64 {
	slices.Sort(took)
	return float64(took[min(len(took)-1, int(part*float64(len(took))))]) / 1e3
}

// times measures each call of a function until a time has passed.
func times(total time.Duration, call func()) []time.Duration {
	took := make([]time.Duration, 0, 1<<20)
	for begin := time.Now(); ; {
		before := time.Now()
		if before.Sub(begin) > total {
			return took
		}
		call()
		took = append(took, time.Since(before))
	}
}

// pause sleeps with the precision of the kernel, which is finer than that of
// the timers of an idle Go program.
func pause(d time.Duration) {
	if d > 0 {
		left := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&left, nil) // a signal may end it early
	}
}

// BenchmarkTailNext measures each call of Next on its own.
func BenchmarkTailNext(b *testing.B) {
	g := generator(wide, farAhead)
	took := make([]time.Duration, b.N)
	for i := range took {
		begin := time.Now()
		must(g.Next(background))
		took[i] = time.Since(begin)
	}
	percentiles(b, took)
}

// A slowNetwork delays every request, and notes the longest round trip.
type slowNetwork struct {
	delay   time.Duration
	longest atomic.Int64
}

func (s *slowNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	begin := time.Now()
	pause(s.delay)
	answer, err := http.DefaultTransport.RoundTrip(r)
	took := int64(time.Since(begin))
	for last := s.longest.Load(); took > last && !s.longest.CompareAndSwap(last, took); last = s.longest.Load() {
	}
	return answer, err
}

// BenchmarkServerTailDry measures each call of the Go client's Next flat out,
// so that its prefetcher runs dry, with a network between it and the server.
// x-trip compares the longest call with the longest request.
func BenchmarkServerTailDry(b *testing.B) {
	s := serveWide(b)
	for _, delay := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond} {
		b.Run(fmt.Sprint("delay=", delay), func(b *testing.B) {
			network := &slowNetwork{delay: delay}
			c := must(client.New(client.Config{Servers: []string{"http://" + s.address}, HTTPClient: &http.Client{Transport: network}}))
			defer c.Close(background)
			q := c.Sequencer("bench")
			must(q.Next(background)) // connects
			took := times(2*time.Second, func() { must(q.Next(background)) })
			percentiles(b, took)
			b.ReportMetric(float64(q.Stats().Waits), "waits")
			b.ReportMetric(percentile(took, 1)*1e3/float64(network.longest.Load()), "x-trip")
		})
	}
}

// BenchmarkServerTailLoss measures each call of a Go client of three servers,
// 1,000 a second, of which one is killed after a second and another one hangs
// after two.
func BenchmarkServerTailLoss(b *testing.B) {
	for name, prefetch := range map[string]*firn.PrefetchOptions{"batch=1": {Count: 1, MaxCount: 1}, "batch=default": nil} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir() + "/s"
			servers := []*process{serve(b, dir), serve(b, dir), serve(b, dir)}
			config := client.Config{Prefetch: prefetch}
			for _, s := range servers {
				config.Servers = append(config.Servers, "firn://"+s.address)
			}
			c := must(client.New(config))
			defer c.Close(background)
			q := c.Sequencer("bench")
			must(q.Next(background))
			defer time.AfterFunc(time.Second, func() { servers[0].Signal(syscall.SIGKILL) }).Stop()
			defer time.AfterFunc(2*time.Second, func() { servers[1].Signal(syscall.SIGSTOP) }).Stop()
			defer servers[1].Signal(syscall.SIGCONT)
			percentiles(b, openLoop([]func() error{func() error { _, err := q.Next(background); return err }}, 1000, 4000))
		})
	}
}

const postNext = "POST /v1/sequencers/bench/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"

// callers is how many requests may be in flight.
const callers = 32

// BenchmarkServerTail measures single requests at a part of a server's
// capacity, which is what the callers reach without pauses. The arrivals are
// fixed in advance, and the time counts from there, so requests that wait for
// slow ones before them count too. Redis gets the same requests at the same
// times as RESP.
func BenchmarkServerTail(b *testing.B) {
	ours, theirs := serveWide(b), redis(b)
	for name, ask := range map[string][2][]func() error{
		"resp": {connect(b, ours.address, "INCR bench\r\n"), connect(b, theirs.address, "INCR bench\r\n")},
		"http": {connect(b, ours.address, postNext)},
		"grpc": {dialGRPC(b, ours.address)},
	} {
		rate := capacity(ask[0])
		if ask[1] != nil {
			rate = min(rate, capacity(ask[1]))
		}
		for _, part := range []int{50, 90} {
			b.Run(fmt.Sprintf("%s/load=%d%%", name, part), func(b *testing.B) {
				r := rate * float64(part) / 100
				var all, redis []time.Duration
				var ratios []float64
				for range max(b.N, rounds) {
					took := openLoop(ask[0], r, int(r))
					all = append(all, took...)
					if ask[1] != nil {
						other := openLoop(ask[1], r, int(r))
						redis = append(redis, other...)
						ratios = append(ratios, percentile(took, 0.999)/percentile(other, 0.999))
					}
				}
				percentiles(b, all)
				b.ReportMetric(r, "req/s")
				if ratios != nil {
					b.ReportMetric(percentile(redis, 0.999), "redis-p99.9-us")
					b.ReportMetric(median(ratios), "x-redis-p99.9")
				}
			})
		}
	}
}

// BenchmarkServerTenants measures the requests of a tenant, 1,000 a second, while
// another one is quiet or, by turns, 1,000 times a second asks for a name that it
// may not use, opens a connection, or reads nothing of its answers. x-alone-p99
// compares the 99th percentiles of rounds that follow each other; x-elsewhere-p99
// compares with a round in which the other one does that to another server of the
// machine, whose two processors all share.
func BenchmarkServerTenants(b *testing.B) {
	file := b.TempDir() + "/tokens.yaml"
	token := func(name string, more ...string) string {
		words := append([]string{"token", "new", "--name", name, "--role", "generate", "--sequencers", name + "-*", "--file", file}, more...)
		return strings.TrimSpace(string(must(exec.Command("../bin/firn", words...).Output())))
	}
	post := func(token, name string, count int) string {
		return fmt.Sprintf("POST /v1/sequencers/%s/next?count=%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", name, count, token)
	}
	good, noisy := token("good"), token("noisy", "--request-rate", "1k", "--rate", "1M")
	s, other := serve(b, b.TempDir()+"/s", "--tokens", file), serve(b, b.TempDir()+"/s", "--tokens", file)
	ask := connect(b, s.address, post(good, "good-1", 1))
	refused := post(noisy, "good-1", 1)
	for name, noise := range map[string]func(at *process) (act func(), end func()){
		"other-names": func(at *process) (act, end func()) {
			c := must(net.Dial("tcp", at.address))
			return func() {
				must(io.WriteString(c, refused))
				must(c.Read(make([]byte, 4<<10))) // the answer is shorter, and comes at once
			}, func() { c.Close() }
		},
		"connections": func(at *process) (act, end func()) {
			all := make(chan net.Conn, 2000)
			return func() {
					if len(all) == cap(all) {
						(<-all).Close()
					}
					c := must(net.Dial("tcp", at.address))
					must(io.WriteString(c, refused))
					all <- c
				}, func() {
					for range len(all) {
						(<-all).Close()
					}
				}
		},
		"reads-slowly": func(at *process) (act, end func()) {
			c := must(net.Dial("tcp", at.address))
			return func() {
				_ = c.SetWriteDeadline(time.Now().Add(time.Millisecond))
				if _, err := io.WriteString(c, post(noisy, "noisy-1", 1000)); err != nil {
					c.Close()
					c = must(net.Dial("tcp", at.address))
				}
			}, func() { c.Close() }
		},
	} {
		b.Run(name, func(b *testing.B) {
			beside := func(at *process) []time.Duration {
				act, end := noise(at)
				done := make(chan struct{})
				var all sync.WaitGroup
				all.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(time.Millisecond):
							act()
						}
					}
				})
				took := openLoop(ask, 1000, 4000)
				close(done)
				all.Wait()
				end()
				return took
			}
			var all []time.Duration
			var alone, elsewhere []float64
			for range max(b.N, rounds) {
				quiet, there, here := openLoop(ask, 1000, 4000), beside(other), beside(s)
				all = append(all, here...)
				alone = append(alone, percentile(here, 0.99)/percentile(quiet, 0.99))
				elsewhere = append(elsewhere, percentile(here, 0.99)/percentile(there, 0.99))
			}
			percentiles(b, all)
			b.ReportMetric(median(alone), "x-alone-p99")
			b.ReportMetric(median(elsewhere), "x-elsewhere-p99")
		})
	}
}

// connect returns callers with a connection each, from their first call on. They
// send a request over RESP or HTTP and read its answer.
func connect(b *testing.B, address, request string) (all []func() error) {
	for range callers {
		var conn net.Conn
		var r *bufio.Reader
		all = append(all, func() error {
			if conn == nil {
				conn = must(net.Dial("tcp", address))
				b.Cleanup(func() { conn.Close() })
				r = bufio.NewReader(conn)
			}
			if _, err := io.WriteString(conn, request); err != nil {
				return err
			}
			_, err := readAnswer(r)
			return err
		})
	}
	return all
}

// dialGRPC returns callers that share a connection. The messages of package
// wrapperspb and emptypb have the fields of NextRequest and NextResponse that
// matter here.
func dialGRPC(b *testing.B, address string) (all []func() error) {
	conn := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	b.Cleanup(func() { conn.Close() })
	for range callers {
		all = append(all, func() error {
			return conn.Invoke(background, "/firn.v1.IDs/Next", wrapperspb.String("bench"), new(emptypb.Empty))
		})
	}
	return all
}

// capacity returns how many requests a second the callers get answered.
func capacity(ask []func() error) float64 {
	var done atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for _, call := range ask {
		all.Go(func() { done.Add(int64(len(times(time.Second, func() { must(0, call()) })))) })
	}
	all.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds()
}

// openLoop makes n requests that arrive at random times, and returns how long
// after its arrival each was answered.
func openLoop(ask []func() error, rate float64, n int) (took []time.Duration) {
	runtime.LockOSThread() // for pause
	defer runtime.UnlockOSThread()
	arrivals := make(chan time.Time, n)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, call := range ask {
		all.Go(func() {
			var own []time.Duration
			for at := range arrivals {
				must(0, call())
				own = append(own, time.Since(at))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Now()
	for range n {
		at = at.Add(time.Duration(random.ExpFloat64() / rate * 1e9))
		pause(time.Until(at))
		arrivals <- at
	}
	close(arrivals)
	all.Wait()
	return took
}
