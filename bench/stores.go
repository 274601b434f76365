//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/e2e/etcdtest"
	"github.com/firnid/firn/server/stores"
)

// storage measures stores, and the load that sequencers and firn serve put on
// them and on the machine.
func (r *run) storage(program string) {
	r.part("serve", func() { r.serving(program) })
	r.part("windows", r.windows)
	r.part("active", r.active)
	r.part("cas memory", func() { r.cas("memory", new(memstore.Store)) })
	r.part("cas directory", func() {
		if !r.wantsCAS("directory") {
			return
		}
		dir, remove := temporary("cas")
		defer remove()
		r.cas("directory", must(dirstore.Open(dir+"/s", &dirstore.Options{Create: true, AllowVolatile: true})))
	})
	r.part("cas postgres", func() {
		if !r.wantsCAS("postgres") {
			return
		}
		db, end := r.postgres()
		defer end()
		if db != nil {
			r.cas("postgres", must(stores.Open(r.ctx, db.URL("create=true"), stores.Options{})))
		}
	})
	r.part("etcd", func() {
		if !r.wantsCAS("etcd") && !r.wants("join-1000/etcd") && !r.wants("join-4000/etcd") {
			return
		}
		f := &fixture{name: "etcd"}
		defer f.close()
		c := etcdtest.Start(f)
		r.cas("etcd", must(stores.Open(r.ctx, c.URL("cas"), stores.Options{})))
		r.join(c, 1000, 5)
		r.join(c, 4000, 1)
	})
}

func (r *run) wantsCAS(name string) bool {
	return r.wants("cas/"+name) || r.wants("cas/"+name+"-8") || r.wants("cas/"+name+"/took")
}

// cas measures compare-and-swap. Each worker uses its own key, as renewals do.
// It closes the store.
func (r *run) cas(name string, s grant.Store) {
	defer s.Close()
	if !r.wantsCAS(name) {
		return
	}
	value := func(n int) []byte { return fmt.Appendf(nil, "%0200d", n) } // about as long as a record
	var latency []float64
	for _, workers := range []int{1, 8} {
		var rates []float64
		olds := make([][]byte, workers)
		for i := range 6 {
			took := make([][]float64, workers)
			var failures error
			var mu sync.Mutex
			var all sync.WaitGroup
			begin := time.Now()
			for w := range workers {
				all.Go(func() {
					key := fmt.Sprintf("bench/cas-%d-%d", workers, w)
					for n := i << 32; time.Since(begin) < 200*time.Millisecond; n++ {
						next := value(n)
						from := time.Now()
						ok, err := s.CAS(r.ctx, key, olds[w], next)
						if err == nil && !ok {
							err = errors.New("refused, though there is no other writer")
						}
						if err != nil {
							mu.Lock()
							failures = errors.Join(failures, err)
							mu.Unlock()
							return
						}
						olds[w] = next
						took[w] = append(took[w], time.Since(from).Seconds()*1e3)
					}
				})
			}
			all.Wait()
			lasted := time.Since(begin).Seconds()
			failed(failures)
			if i == 0 {
				continue // it warms up
			}
			each := slices.Concat(took...)
			rates = append(rates, float64(len(each))/lasted)
			if workers == 1 {
				latency = append(latency, each...)
			}
		}
		if workers == 1 {
			r.add("cas/"+name, spreadOf(rates), "/s", Figure{Note: "one worker"})
			r.add("cas/"+name+"/took", spreadOf(latency), "ms", Figure{})
		} else {
			r.add(fmt.Sprintf("cas/%s-%d", name, workers), spreadOf(rates), "/s", Figure{Note: fmt.Sprintf("%d workers, a key each", workers)})
		}
	}
}

// A countingStore counts the requests to a store.
type countingStore struct {
	grant.Store
	reads, writes, lists atomic.Int64
}

func (s *countingStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.reads.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *countingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.writes.Add(1)
	return s.Store.CAS(ctx, key, old, next)
}

func (s *countingStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	s.lists.Add(1)
	return s.Store.List(ctx, prefix, yield)
}

// windows measures how many writes N nodes cause in a store with the window W:
// 3N/W.
func (r *run) windows() {
	const nodes, window = 300, 3 * time.Second
	name := fmt.Sprintf("writes/%d-nodes-%v", nodes, window)
	if !r.wants(name) && !r.wants(name+":3N/W") {
		return
	}
	s := &countingStore{Store: new(memstore.Store)}
	defer s.Close()
	ahead := 10 * time.Millisecond
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var failures error
	for range nodes {
		all.Go(func() {
			q, err := sequencer.Open(ctx, s, "windows", &sequencer.Config{Layout: firn.Default(), MaxAhead: &ahead, Window: window})
			if err == nil {
				for ctx.Err() == nil {
					if _, err = q.Next(ctx); err != nil {
						break
					}
					select {
					case <-ctx.Done():
					case <-time.After(50 * time.Millisecond):
					}
				}
				_ = q.Close(context.WithoutCancel(ctx))
			}
			if err != nil && ctx.Err() == nil {
				mu.Lock()
				failures = errors.Join(failures, err)
				mu.Unlock()
			}
		})
	}
	sleep(ctx, 2*window) // so that renewals are spread as in the long run
	var writes, reads []float64
	for range 6 {
		w, g, begin := s.writes.Load(), s.reads.Load(), time.Now()
		sleep(ctx, window/2)
		lasted := time.Since(begin).Seconds()
		writes = append(writes, float64(s.writes.Load()-w)/lasted)
		reads = append(reads, float64(s.reads.Load()-g)/lasted)
	}
	ended := ctx.Err()
	cancel()
	all.Wait()
	failed(errors.Join(failures, ended))
	formula := 3 * nodes / window.Seconds()
	r.add(name, spreadOf(writes), "/s", Figure{Note: fmt.Sprintf("3N/W is %s", number(formula))})
	for i := range writes {
		writes[i] /= formula
	}
	r.add(name+":3N/W", spreadOf(writes), "x", Figure{})
	r.add(name+"/reads", spreadOf(reads), "/s", Figure{})
}

// active measures one member with 1,000 sequencers in a directory; it takes an
// ID of each every second.
func (r *run) active() {
	const n = 1000
	if !r.wants("active-1000/open") && !r.wants("active-1000/cpu") {
		return
	}
	dir, remove := temporary("active")
	defer remove()
	s := must(dirstore.Open(dir+"/s", &dirstore.Options{Create: true, AllowVolatile: true}))
	defer s.Close()
	var all []*sequencer.Sequencer
	defer func() {
		var closing sync.WaitGroup
		for _, q := range all {
			closing.Go(func() { _ = q.Close(context.WithoutCancel(r.ctx)) })
		}
		closing.Wait()
	}()
	begin := time.Now()
	for i := range n {
		q, err := sequencer.Open(r.ctx, s, fmt.Sprintf("s%d", i), &sequencer.Config{Layout: firn.Default()})
		failed(err)
		all = append(all, q)
		must(q.Next(r.ctx))
	}
	r.add("active-1000/open", one(time.Since(begin).Seconds()), "s", Figure{Note: "one after the other, in a directory"})
	var cpu []float64
	for range 12 {
		begin, before := time.Now(), processTime()
		for _, q := range all {
			must(q.Next(r.ctx))
		}
		sleep(r.ctx, time.Second-time.Since(begin))
		cpu = append(cpu, 100*float64(processTime()-before)/float64(time.Since(begin)))
	}
	r.add("active-1000/cpu", spreadOf(cpu), "%", Figure{Note: "of a processor, with windows of 30s and an ID of each in a second"})
}

// join measures how long it takes until n nodes that start at once have an ID
// each.
func (r *run) join(c *etcdtest.Cluster, n, rounds int) {
	name := fmt.Sprintf("join-%d/etcd", n)
	if !r.wants(name) {
		return
	}
	const connections = 20
	layout := firn.MustParseLayout("bits=time:41.node:13.seq:9,unit=1ms,epoch=2026-01-01T00:00:00Z")
	var total []float64
	var tries, refused uint64
	began := time.Now()
	for round := range rounds {
		if time.Since(began) > 40*time.Second {
			break // on a slow machine, a few are enough
		}
		var open [connections]grant.Store
		for i := range open {
			open[i] = must(stores.Open(r.ctx, c.URL(fmt.Sprintf("join-%d-%d", n, round))+"?timeout=1m", stores.Options{}))
			defer open[i].Close()
		}
		must(grant.Create(r.ctx, open[0], "join", grant.NewConfig(layout, 0), time.Now()))
		opened := make([]*sequencer.Sequencer, n)
		numbers := make([]uint64, n)
		var all sync.WaitGroup
		var mu sync.Mutex
		var failures error
		begin := time.Now()
		for i := range n {
			all.Go(func() {
				err := func() (err error) {
					for opened[i] == nil {
						opened[i], err = sequencer.Open(r.ctx, open[i%connections], "join", &sequencer.Config{WaitForNode: true, Timeout: time.Minute})
						if err != nil && !errors.Is(err, sequencer.ErrUnavailable) {
							return err
						}
					}
					id, err := opened[i].Next(r.ctx)
					if err != nil {
						return err
					}
					p, err := layout.Decompose(id)
					numbers[i] = p.Node
					return err
				}()
				if err != nil {
					mu.Lock()
					failures = errors.Join(failures, err)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		total = append(total, time.Since(begin).Seconds())
		for _, q := range opened {
			if q != nil {
				stats := q.Stats().Keeper
				tries += stats.Acquired + stats.Refused + stats.Unknown
				refused += stats.Refused
				all.Go(func() { _ = q.Close(context.WithoutCancel(r.ctx)) })
			}
		}
		all.Wait()
		failed(failures)
		slices.Sort(numbers)
		if different := len(slices.Compact(numbers)); different != n {
			panic(fmt.Sprintf("%d nodes have %d different numbers", n, different))
		}
	}
	r.add(name, spreadOf(total), "s", Figure{Note: fmt.Sprintf("three etcd processes, 8192 node IDs; %d of %d attempts were refused", refused, tries)})
}

// serving measures firn serve by itself, with a directory.
func (r *run) serving(program string) {
	if info, err := os.Stat(program); err != nil {
		r.skip("serve/binary", err.Error())
	} else {
		r.add("serve/binary", one(float64(info.Size())/1e6), "MB", Figure{Note: "as make build makes it"})
	}
	wanted := false
	for _, name := range []string{"first-id", "first-id-fresh", "idle-cpu", "rss", "rss-loaded"} {
		wanted = wanted || r.wants("serve/"+name)
	}
	if !wanted {
		return
	}
	dir, remove := temporary("serve")
	defer remove()
	first := func(name string) (took float64, s *firnServer) {
		begin := time.Now()
		s, err := serve(r.ctx, program, "--store", "dir:"+dir+"/"+name+"?create=true&volatile=true")
		failed(err)
		resp, err := http.Post(s.url+"/v1/sequencers/orders/next", "", nil)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"ids":["`))) {
				err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
			}
		}
		took = time.Since(begin).Seconds() * 1e3
		http.DefaultClient.CloseIdleConnections()
		if err != nil {
			s.end()
			panic(err)
		}
		return took, s
	}
	var fresh, again []float64
	for i := range 15 {
		took, s := first(fmt.Sprint(i))
		s.end()
		fresh = append(fresh, took)
		if took, s = first(fmt.Sprint(i)); i < 14 {
			s.end()
		} else {
			r.idle(s)
		}
		again = append(again, took)
	}
	r.add("serve/first-id", spreadOf(again), "ms", Figure{Note: "from exec to an ID over HTTP, in a directory with the sequencer"})
	r.add("serve/first-id-fresh", spreadOf(fresh), "ms", Figure{Note: "the same, in a new directory"})
}

// idle measures a server that has made an ID and has nothing to do, and ends
// it.
func (r *run) idle(s *firnServer) {
	defer s.end()
	if !onLinux() {
		r.skip("serve/idle-cpu", "only Linux reports what another process uses")
		return
	}
	sleep(r.ctx, time.Second)
	var cpu []float64
	for range 10 {
		begin, before := time.Now(), s.cpu()
		sleep(r.ctx, time.Second)
		cpu = append(cpu, 100*float64(s.cpu()-before)/float64(time.Since(begin)))
	}
	// The mean instead of the median, because work that is done only once in
	// some seconds counts too.
	sum := 0.0
	for _, c := range cpu {
		sum += c
	}
	s2 := spreadOf(cpu)
	s2.median = sum / float64(len(cpu))
	r.add("serve/idle-cpu", s2, "%", Figure{Note: "of a processor, the mean of ten seconds"})
	r.add("serve/rss", one(s.resident()), "MiB", Figure{Note: "after one ID"})
	made, closeAll, err := callers(16, func() (caller, error) {
		return respConn(r.ctx, s.address, respCommand("NEXT", "orders"), 16, 0)
	})
	failed(err)
	_, err = drive(made, 2*time.Second)
	closeAll()
	failed(err)
	r.add("serve/rss-loaded", one(s.resident()), "MiB", Figure{Note: "after 16 connections over RESP, pipeline 16, for 2s"})
}
