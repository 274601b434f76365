package s3store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/history"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/sequencer"
)

// counting increments a counter by several stores, while disturb disturbs them,
// until enough increments were confirmed. The counter must then have risen by
// the confirmed ones, and by no more than also the unknown ones.
func counting(t *testing.T, stores []*store, enough int64, disturb func(round int)) {
	t.Helper()
	var confirmed, unknown atomic.Int64
	var working sync.WaitGroup
	for w, s := range stores {
		working.Go(func() {
			for i := 0; confirmed.Load() < enough && t.Context().Err() == nil; i++ {
				value, err := s.Get(t.Context(), "counter")
				if err != nil {
					continue
				}
				number, _, _ := strings.Cut(string(value), " ")
				n, _ := strconv.Atoi(number)
				ok, err := s.CAS(t.Context(), "counter", value, fmt.Appendf(nil, "%d %d %d", n+1, w, i))
				switch history.OutcomeOf(ok, err) {
				case history.Applied:
					confirmed.Add(1)
				case history.Unknown:
					unknown.Add(1)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { working.Wait(); close(ended) }()
	isRunning := func() bool {
		select {
		case <-ended:
			return false
		default:
			_, _ = stores[0].Get(t.Context(), "counter") // time passes
			return true
		}
	}
	rounds := 0
	for ; isRunning(); rounds++ {
		disturb(rounds)
		for last := confirmed.Load(); confirmed.Load() < min(last+3, enough) && isRunning(); {
		}
	}
	number, _, _ := strings.Cut(string(must.Get(stores[0].Get(t.Context(), "counter"))(t)), " ")
	if n := int64(must.Get(strconv.Atoi(number))(t)); n < confirmed.Load() || n > confirmed.Load()+unknown.Load() {
		t.Errorf("the counter is %d after %d confirmed increments and %d unknown ones", n, confirmed.Load(), unknown.Load())
	}
	t.Logf("report: %d confirmed increments and %d unknown ones in %d rounds", confirmed.Load(), unknown.Load(), rounds)
}

// TestCuts cuts connections, and loses answers, while writes are under way.
func TestCuts(t *testing.T) {
	f := newFake(t, faults{})
	link := proc.NewLink(t, strings.TrimPrefix(f.URL, "http://"))
	o := options("http://" + link.Address)
	direct := o
	direct.Endpoint = f.URL
	stores := []*store{unprobed(t, direct), unprobed(t, o), unprobed(t, o), unprobed(t, o)}
	counting(t, stores, 300, func(round int) {
		link.CutAnswers(round%3 == 1) // unless it does, it resets them
	})
}

// TestResentWrites has a hop that sends every write twice, and returns one of
// the answers: the second is 412 for a write that was applied, and that a fence
// has replaced in between now and then, or that a member has given up. Members
// come and go, and no ID may repeat. Time passes only when all wait.
func TestResentWrites(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("FIRN_ALL") != "" {
		seeds = 10
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) { resentWrites(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func resentWrites(t *testing.T, r *rand.Rand) {
	f := unserved(t, faults{})
	direct := inBubble(f.ServeHTTP)
	defer direct.end()
	operator := direct.store(t)
	defer operator.Close()
	var mu sync.Mutex // guards r, and what follows
	puts, applied, replaced, fenced := 0, 0, 0, 0
	hop := inBubble(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodPut {
			f.ServeHTTP(w, q)
			return
		}
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		send := func() *httptest.ResponseRecorder {
			q, w := q.Clone(context.Background()), httptest.NewRecorder() // the client may give up
			q.Body = io.NopCloser(bytes.NewReader(body))
			f.ServeHTTP(w, q)
			return w
		}
		first := send()
		mu.Lock()
		puts++
		pause, fences := time.Duration(r.IntN(100))*time.Millisecond, first.Code == http.StatusOK && puts%30 >= 10
		if fences = fences && puts >= fenced+20; fences {
			fenced = puts
		}
		answerFirst := !fences && r.IntN(2) == 0
		if r.IntN(20) == 0 {
			pause = time.Duration(r.IntN(int(5 * time.Second))) // longer than a window
		}
		mu.Unlock()
		if time.Sleep(pause); fences {
			_, _ = grant.Fence(context.Background(), operator, "s", nil) // before the sequencer exists, it fails
		}
		second := send()
		if answerFirst {
			second = first
		}
		f.mu.Lock()
		now := f.objects[strings.TrimPrefix(q.URL.Path, "/ids/")]
		if first.Code == http.StatusOK && second.Code != http.StatusOK {
			if applied++; now.tag != tagOf(body) {
				replaced++
			}
		}
		f.mu.Unlock()
		for k, v := range second.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(second.Code)
		_, _ = w.Write(second.Body.Bytes())
	})
	defer hop.end()

	var ids []firn.ID
	var members sync.WaitGroup
	o := &sequencer.Options{Layout: firn.MustParseLayout("bits=time:41.node:3.seq:12,unit=1ms,epoch=1999-01-01T00:00:00Z"),
		Window: 2 * time.Second, WaitForNode: true}
	for range 4 {
		members.Go(func() {
			s := hop.store(t)
			defer s.Close()
			for range 3 {
				q, err := sequencer.Open(t.Context(), s, "s", o)
				if err != nil {
					continue // what was applied counts as refused
				}
				for range 5 {
					some := make([]firn.ID, 500)
					within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					if q.Fill(within, some) == nil {
						mu.Lock()
						ids = append(ids, some...)
						mu.Unlock()
					}
					cancel()
					time.Sleep(400 * time.Millisecond) // so that windows are renewed
				}
				_ = q.Close(t.Context())
			}
		})
	}
	members.Wait()
	made := len(ids)
	slices.Sort(ids)
	if left := len(slices.Compact(ids)); left != made || made == 0 || replaced == 0 {
		t.Errorf("%d IDs, %d of them twice, with %d writes replaced before they were refused", made, made-left, replaced)
	}
	t.Logf("report: %d IDs, none twice, of %d writes sent twice: %d applied ones were answered 412, %d of them replaced",
		made, puts, applied, replaced)
}

// TestKilledGateway has two gateways on one directory, and kills one of them
// under load.
func TestKilledGateway(t *testing.T) {
	one := s3test.Start(t, t.TempDir())
	two := s3test.Start(t, one.Dir)
	o := options("http://" + one.Address)
	stores := []*store{open(t, o), unprobed(t, o)}
	o.Endpoint = "http://" + two.Address
	stores = append(stores, unprobed(t, o), unprobed(t, o))
	counting(t, stores, 300, func(round int) {
		if round%10 == 0 {
			two.Kill()
			two.Begin()
		}
	})
}
