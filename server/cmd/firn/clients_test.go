//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/test/distinct"
	"github.com/firnid/firn/server/internal/test/nettest"
)

// A ledger is the way of a client's requests. It counts what became of each.
type ledger struct {
	next *http.Transport

	sent  atomic.Int64
	whole atomic.Int64 // answers with IDs that came to their end
	asked atomic.Int64 // the IDs in them
}

func (l *ledger) RoundTrip(r *http.Request) (*http.Response, error) {
	l.sent.Add(1)
	n, _ := strconv.ParseInt(r.URL.Query().Get("count"), 10, 64)
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		l.whole.Add(1)
		l.asked.Add(n)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// A caller draws IDs from a sequencer of a client in one way or another.
type caller struct {
	ids  int64
	errs int64
	last error
}

// draw takes IDs until stop is closed, and notes them.
func (c *caller) draw(ctx context.Context, s *client.Sequencer, way int, stop *atomic.Bool, counted *distinct.Slots) error {
	for !stop.Load() {
		var err error
		ids := make([]firn.ID, 777)
		switch way % 3 {
		case 0:
			for i := range ids {
				if ids[i], err = s.Next(ctx); err != nil {
					ids = ids[:i]
					break
				}
			}
		case 1:
			if err = s.Fill(ctx, ids); err != nil {
				ids = nil
			}
		case 2:
			var b firn.Batch
			b, err = s.NextBatch(ctx, 3000)
			ids = slices.Collect(b.All())
		}
		if err != nil {
			c.errs, c.last = c.errs+1, err
		}
		c.ids += int64(len(ids))
		if err := counted.AddAll(ids); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the statistics of a client with the ledger of its program i.
func (l *ledger) compare(t *testing.T, i int, stats client.Stats) {
	t.Helper()
	if got, want := int64(stats.Fetches), l.whole.Load(); got != want {
		t.Errorf("program %d: %d answers arrived as a whole, and the client says that it has %d", i, want, got)
	}
	if got, want := int64(stats.Failures), l.sent.Load()-l.whole.Load(); got != want {
		t.Errorf("program %d: %d requests were sent and %d answered, so %d failed, and the client says %d", i, l.sent.Load(), l.whole.Load(), want, got)
	}
	if got, want := int64(stats.IDs), l.asked.Load(); got != want {
		t.Errorf("program %d: %d IDs were asked for in answered requests, and the client says that it has %d", i, want, got)
	}
}

// TestClientsOfKilledServers: programs with the Go client, over HTTP and
// RESP, draw at full rate from servers on one directory that are killed, told to stop, and stopped for longer than their windows. No
// ID comes twice, and what became of each request is known: a client has used
// every answer that arrived, and has counted a failure for every other request.
func TestClientsOfKilledServers(t *testing.T) {
	inFull(t)
	lasts := chaosLasts()
	store := testStore(t)
	createChaos(t, "--max-ahead 200ms --window 1s --layout "+chaosLayout+" --store "+store)
	servers := make([]testServer, 3)
	var urls []string
	for i := range servers {
		servers[i].listen = nettest.FreeAddress(t)
		servers[i].start(t, store)
		urls = append(urls, "http://"+servers[i].listen)
	}
	defer func() {
		for i := range servers {
			servers[i].end(9)
		}
	}()

	counted := &distinct.Slots{Layout: firn.MustParseLayout(chaosLayout)}
	var stop atomic.Bool
	var all sync.WaitGroup

	// Programs with two goroutines each, which share prefetched IDs. The last one
	// has no ledger, and so uses RESP.
	const programs = 4
	ledgers := make([]*ledger, programs-1)
	clients := make([]*client.Client, programs)
	callers := make([]caller, 2*programs)
	for i := range programs {
		config := client.Config{Servers: urls, Timeout: 500 * time.Millisecond, Prefetch: &firn.PrefetchOptions{Count: 100, MaxCount: 5000}}
		if i < len(ledgers) {
			ledgers[i] = &ledger{next: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}}
			defer ledgers[i].next.CloseIdleConnections()
			config.HTTPClient = &http.Client{Transport: ledgers[i]}
		} else {
			config.Servers = nil
			for _, u := range urls {
				config.Servers = append(config.Servers, strings.Replace(u, "http://", "firn://", 1))
			}
		}
		c := must.Get(client.New(config))(t)
		clients[i] = c
		for j := range 2 {
			c := &callers[2*i+j]
			all.Go(func() {
				if err := c.draw(t.Context(), clients[i].Sequencer("chaos"), i, &stop, counted); err != nil {
					t.Error(err)
				}
			})
		}
	}

	d := disturb(t, servers, store, lasts, 2, func() {}, func() bool {
		var ids, failures uint64
		for _, c := range clients {
			s := c.Sequencer("chaos").Stats()
			ids, failures = ids+s.IDs, failures+s.Failures
		}
		return (ids >= 1_000_000 || nettest.Raced()) && failures > 0
	})
	stop.Store(true)
	all.Wait()

	var sent, whole, failed, drawn, callerErrs int64
	for i, c := range clients {
		s := c.Sequencer("chaos")
		closing, done := context.WithTimeout(context.Background(), must.Patience)
		if err := c.Close(closing); err != nil {
			t.Errorf("program %d: Close: %v", i, err)
		}
		done()
		stats := s.Stats()
		if i < len(ledgers) {
			ledgers[i].compare(t, i, stats)
			sent, whole = sent+ledgers[i].sent.Load(), whole+ledgers[i].whole.Load()
		}
		out := callers[2*i].ids + callers[2*i+1].ids
		// What is left is in store, or was on its way when the client was closed; of
		// a Fill that has failed all are lost, and it said so.
		lost := (callers[2*i].errs + callers[2*i+1].errs) * 777
		if left := int64(stats.IDs) - out - int64(stats.Discarded); left < 0 || left > 3*5000+lost {
			t.Errorf("program %d: of %d IDs that came %d were handed out and %d were too old: %d are left", i, stats.IDs, out, stats.Discarded, left)
		}
		for j := range 2 {
			c := callers[2*i+j]
			callerErrs += c.errs
			if c.last != nil && strings.Contains(c.last.Error(), "the answer cannot be used") {
				t.Errorf("program %d: %v", i, c.last)
			}
			if c.ids == 0 {
				t.Errorf("caller %d of program %d has had no ID: %v", j, i, c.last)
			}
		}
		failed, drawn = failed+int64(stats.Failures), drawn+out
	}
	nodes, _ := counted.Check(t)
	t.Logf("report: clients of killed servers: 3 firn serve on a directory for %v: %d killed, %d told to stop, %d stopped up to 2.5s (the window is 1s); "+
		"%d programs with the Go client, one of them over RESP: the others sent %d requests, %d answered and used; %d failed and counted; %d IDs drawn, %d calls failed; "+
		"%d IDs of %d node IDs, no duplicate",
		lasts, d.kills, d.ends, d.stops, programs, sent, whole, failed, drawn, callerErrs,
		counted.Len(), nodes)
	if counted.Len() < 1_000_000 && !nettest.Raced() {
		t.Errorf("%d IDs, want a million", counted.Len())
	}
	if d.kills == 0 || failed == 0 {
		t.Errorf("%d kills and %d failed requests show nothing", d.kills, failed)
	}
}
