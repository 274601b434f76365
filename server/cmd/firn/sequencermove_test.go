//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/kubetest"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/etcdtest"
	"github.com/firnid/firn/server/internal/test/sqltest"
)

// TestMoveStores moves a sequencer from every store to every other one, by a
// command that is killed several times, while a server of each store is asked
// for IDs all the time. No ID comes twice, and the records of node IDs that a
// wrong clock has blocked arrive.
func TestMoveStores(t *testing.T) {
	inFull(t)
	urls := []string{testStore(t), sqltest.PostgreSQL(t).URL("create=true", patient)}
	if os.Getenv("FIRN_ALL") != "" {
		cluster := kubetest.Start(t)
		cluster.Ready()
		cluster.Namespace("ids")
		bucket := s3test.Start(t, t.TempDir())
		t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
		for _, prefix := range []string{"one", "two"} {
			urls = append(urls, "s3://ids/"+prefix+"?path-style=true&endpoint=http://"+bucket.Address)
		}
		urls = append(urls, sqltest.MariaDB(t).URL("create=true", patient), etcdtest.Start(t).URL("servers"),
			"kubernetes://ids?kubeconfig="+cluster.Kubeconfig("https://"+cluster.Address, "ids", kubetest.AdminToken))
	}
	createChaos(t, "--window 5s --layout "+chaosLayout+" --store "+urls[0])
	blocked := blockNodes(t, urls[0])

	counted := &distinct.Slots{Layout: firn.MustParseLayout(chaosLayout)}
	client := &http.Client{Transport: new(http.Transport)}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	took := make(chan int) // the server that gave IDs
	for i, url := range urls {
		s := new(testServer)
		s.start(t, url+" --create-on-first-use=false")
		defer s.end(syscall.SIGTERM)
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if take(client, *s.url.Load(), 1000, n%2 == 0, counted) != nil {
					select {
					case <-time.After(20 * time.Millisecond): // it has no IDs now
					case <-ctx.Done():
					}
					continue
				}
				select {
				case took <- i:
				case <-ctx.Done():
				}
			}
		})
	}
	until := func(server int) {
		for n := 0; n < 20; {
			if <-took == server {
				n++
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	until(0)
	moves, kills, at := 0, 0, 0
	for by := 1; by < len(urls); by++ { // from each to each, as their number is prime
		for range urls {
			to := (at + by) % len(urls)
			args := "sequencer move chaos --yes --store " + urls[at] + " --to " + urls[to]
			done := make(chan error, 1)
			go func() {
				for range 3 {
					cmd := firnCommand(t.Context(), args)
					if cmd.Start() != nil {
						break
					}
					time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond) // at which write it is killed
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					kills++
				}
				out, err := firnCommand(t.Context(), args).CombinedOutput()
				if err != nil {
					err = fmt.Errorf("firn %s: %w\n%s", args, err, out)
				}
				done <- err
			}()
			for moving := true; moving; {
				select {
				case err := <-done:
					if err != nil {
						t.Fatal(err)
					}
					moving = false
				case <-took:
				}
			}
			moves++
			until(to)
			at = to
		}
	}
	stop()
	clients.Wait()
	counted.Check(t)
	for node, fields := range blocked {
		if got := nodeRecordIn(t, urls[at], node); !strings.Contains(got, fields) {
			t.Errorf("after %d moves, node ID %d is %s, want %s", moves, node, got, fields)
		}
	}
	t.Logf("report: %d moves between %d kinds of stores, interrupted up to %d times: %d IDs, none twice", moves, len(urls), kills, counted.Len())
}

// blockNodes writes what a clock a year ahead leaves: a mark, and the span that
// a repair has spoiled. It returns what the records of the node IDs say.
func blockNodes(t *testing.T, url string) map[int]string {
	t.Helper()
	const year = 366 * 24 * 3600 * 1000
	now := time.Now().UnixMilli()
	all := map[int]string{
		30: fmt.Sprintf(`"until":%d,"wall":%d,"state":"free","host":"h","gap":[%d,%d]`, now+year, now+year-1000, now-1000, now+year-1000),
		31: fmt.Sprintf(`"until":%d,"wall":%d,"state":"free","host":"h","spoiled":[%d,%d]`, now-1000, now-2000, now+year-1000, now+year),
	}
	s := openTest(t, url)
	for node, fields := range all {
		record := fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o",%s}`, fields)
		if applied, err := s.CAS(t.Context(), fmt.Sprintf("v1/chaos/n/%02d", node), nil, []byte(record)); err != nil || !applied {
			t.Fatal(applied, err)
		}
	}
	// Servers would use node ID 31, which they may.
	all[31] = all[31][strings.Index(all[31], `"spoiled"`):]
	return all
}

func nodeRecordIn(t *testing.T, url string, node int) string {
	t.Helper()
	value := must.Get(openTest(t, url).Get(t.Context(), fmt.Sprintf("v1/chaos/n/%02d", node)))(t)
	return string(bytes.TrimSpace(value))
}
