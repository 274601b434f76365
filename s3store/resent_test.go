package s3store

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

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
			_, _ = grant.Fence(context.Background(), operator, "s", &grant.FenceOptions{LongestWindow: 2 * time.Second}) // before the sequencer exists, it fails
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
