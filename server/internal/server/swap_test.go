package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/sequencer"
)

// failureOf is how a program tells the failures of a firn.Source apart.
func failureOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{grant.ErrMoved, "moved"},
		{grant.ErrDetached, "detached"},
		{grant.ErrDestroyed, "destroyed"},
		{grant.ErrNodesExhausted, "no node ID"},
		{grant.ErrStoreWentBack, "the store went back"},
		{grant.ErrClockAhead, "the clock is ahead"},
		{grant.ErrClockBehind, "the clock is behind"},
		{firn.ErrTimeOver, "the time is over"},
		{firn.ErrExhausted, "busy"},
		{firn.ErrUnavailable, "unavailable"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return fmt.Sprint(err)
}

// swaps are outages, each with its failure. A damaged record is not among them:
// the kind bad-record stands for several errors. Neither is a clock that went
// back while IDs are made, whose error is a type.
var swaps = map[string]struct {
	outage
	want string
}{
	"none":                         {outage{}, "<nil>"},
	"store-unavailable":            {outages["store-unavailable"], "unavailable"},
	"store-unavailable for writes": {outages["store-unavailable for writes"], "unavailable"},
	"store-rolled-back":            {outages["store-rolled-back"], "the store went back"},
	"nodes-exhausted":              {outages["nodes-exhausted"], "no node ID"},
	"not-yet":                      {outages["not-yet"], "no node ID"},
	"time-over":                    {outages["time-over"], "the time is over"},
	"detached":                     {outages["detached"], "detached"},
	"moved":                        {outages["moved"], "moved"},
	"destroyed":                    {outages["destroyed"], "destroyed"},
	"clock-ahead": {outage{before: func(w *outageWorld) {
		w.create("default", nil)
		w.offset.Store(int64(time.Hour))
	}}, "the clock is ahead"},
	"clock": {outage{before: func(w *outageWorld) {
		w.create("default", nil)
		now := time.Now().UnixMilli()
		for node := 3; node <= 4; node++ { // no other node ID may be taken either
			faultstore.Put(w.t, w.mem, fmt.Sprintf("v1/orders/n/%04d", node), fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%d,"state":"held","host":"h"}`, now+60_000, now))
		}
		w.offset.Store(int64(-time.Hour))
	}}, "the clock is behind"},
	"busy": {outage{before: func(w *outageWorld) { w.create("bits=time:41.node:10.seq:1,unit=1m", nil) }}, "busy"},
}

// TestErrorsOfSequencerAndClient: a program that makes its IDs itself, and one
// that gets them from servers instead, check the same errors.
func TestErrorsOfSequencerAndClient(t *testing.T) {
	for name, s := range swaps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOutageWorld(t)
			c := must.Get(client.New(client.Config{Servers: []string{"firn://" + w.address}, Patience: -1}))(t)
			defer c.Close(context.Background())
			options := sequencer.Options{Now: w.options(0).Now, Nodes: &grant.NodeRange{Lo: 4, Hi: 4}}
			if name == "nodes-exhausted" {
				options.Nodes = w.options(3).Nodes
			}
			var own *sequencer.Sequencer
			defer func() {
				if own != nil {
					own.Abandon() // the store may not answer
				}
			}()
			programs := map[string]func(context.Context) error{
				"a client": func(ctx context.Context) error { _, err := c.Sequencer("orders").NextBatch(ctx, 1); return err },
				"a sequencer": func(ctx context.Context) (err error) {
					if own == nil {
						if own, err = sequencer.Open(ctx, w.timed(), "orders", &options); err != nil {
							return err
						}
					}
					_, err = own.NextBatch(ctx, 1)
					return err
				},
			}
			run := func(program func(context.Context) error) error {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				return program(ctx)
			}
			if s.before != nil {
				s.before(w)
			} else {
				must.Do(t, run(programs["a client"])) // whose server creates it
				must.Do(t, run(programs["a sequencer"]))
			}
			if s.begin != nil {
				began := make(chan struct{})
				var polling sync.WaitGroup
				polling.Go(func() { // so that its window is renewed meanwhile
					for {
						select {
						case <-began:
							return
						case <-time.After(10 * time.Millisecond):
							_ = run(programs["a sequencer"])
						}
					}
				})
				s.begin(w)
				close(began)
				polling.Wait()
			}
			for who, program := range programs {
				w.await(fmt.Sprintf("%s fails: want %s", who, s.want), func() (bool, string) {
					got := failureOf(run(program))
					return got == s.want, got
				})
			}
		})
	}
}
