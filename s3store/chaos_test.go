package s3store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/must"
	"github.com/firnid/firn/internal/proc"
	"github.com/firnid/firn/internal/s3test"
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
				switch {
				case ok:
					confirmed.Add(1)
				case err != nil && !errors.Is(err, grant.ErrNotSent):
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
	value, err := stores[0].Get(t.Context(), "counter")
	must.Do(t, err)
	number, _, _ := strings.Cut(string(value), " ")
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
	var stores []*store
	for range 3 {
		stores = append(stores, unprobed(t, o))
	}
	direct := o
	direct.Endpoint = f.URL
	stores = append([]*store{unprobed(t, direct)}, stores...)
	counting(t, stores, 300, func(round int) {
		switch round % 3 {
		case 0:
			link.Reset()
		case 1:
			link.CutAnswers(true)
		case 2:
			link.CutAnswers(false)
		}
	})
}

// TestKilledGateway has two gateways on one directory, and kills one of them
// under load.
func TestKilledGateway(t *testing.T) {
	one := s3test.Start(t, t.TempDir())
	two := s3test.Start(t, one.Dir)
	o := options("http://" + one.Address)
	var stores []*store
	stores = append(stores, open(t, o), unprobed(t, o))
	o.Endpoint = "http://" + two.Address
	stores = append(stores, unprobed(t, o), unprobed(t, o))
	counting(t, stores, 300, func(round int) {
		if round%10 == 0 {
			two.Kill()
			two.Begin()
		}
	})
}
