package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
)

// Even low bits reach the clients of every protocol, at one ID per tick and in
// bursts.
func TestLowBits(t *testing.T) {
	const (
		rounds = 4000
		// With 15 degrees of freedom, an even distribution exceeds this once in
		// 10^12: all rows together fail less than once in 10^9 runs.
		most = 90.0
	)
	type taker func(n int) (string, error) // returns the IDs, a word each
	for name, connect := range map[string]func(t *testing.T, address string) taker{
		"HTTP": func(_ *testing.T, address string) taker {
			return func(n int) (string, error) {
				resp, err := http.Post(fmt.Sprintf("http://%s/v1/sequencers/orders/next?count=%d&format=dec", address, n), "", nil)
				if err != nil {
					return "", err
				}
				defer resp.Body.Close()
				ids, err := io.ReadAll(resp.Body)
				return string(ids), err
			}
		},
		"RESP": func(t *testing.T, address string) taker {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			answers := bufio.NewReader(conn)
			return func(n int) (ids string, err error) {
				fmt.Fprintf(conn, "NEXT orders %d\r\n", n)
				for i := range 1 + 2*n { // *N, and $18 before each ID
					line, err := answers.ReadString('\n')
					if err != nil {
						return ids, err
					}
					if i > 0 && i%2 == 0 {
						ids += line
					}
				}
				return ids, nil
			}
		},
		"gRPC": func(t *testing.T, address string) taker {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return func(n int) (string, error) {
				answer, err := firnv1.NewIDsClient(conn).Next(t.Context(), &firnv1.NextRequest{Sequencer: "orders", Count: uint32(n)})
				return strings.Trim(fmt.Sprint(answer.GetIds()), "[]"), err
			}
		},
	} {
		for _, burst := range []int{1, 20} {
			t.Run(fmt.Sprint(name, " ", burst), func(t *testing.T) {
				var clock atomic.Int64
				clock.Store(time.Now().UnixMilli())
				c := Config{Store: new(memstore.Store)}
				c.Sequencers.Layout, c.Sequencers.LowBits = firn.Default(), 4
				c.Sequencers.Now = func() time.Time { return time.UnixMilli(clock.Load()) }
				_, address := served(t, c)
				take := connect(t, address)
				var count [16]float64
				for range rounds {
					clock.Add(1)
					text, err := take(burst)
					ids := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
					if err != nil || len(ids) != burst {
						t.Fatalf("%d IDs are %q, %v", burst, text, err)
					}
					for _, text := range ids {
						id, err := firn.ParseID(text)
						if err != nil {
							t.Fatal(err)
						}
						count[id%16]++
					}
				}
				chi, want := 0.0, float64(rounds*burst)/16
				for _, n := range count {
					chi += (n - want) * (n - want) / want
				}
				// IDs of a burst are consecutive: bursts vary, not IDs.
				if chi /= float64(burst); chi > most {
					t.Errorf("χ² is %.0f, want less than %v", chi, most)
				}
			})
		}
	}
}
