package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

// TestStaticFirstUse: all callers of a new name get the same generator.
func TestStaticFirstUse(t *testing.T) {
	s := newStatic(t, "default")
	const callers = 32
	for round := range 20 {
		name := fmt.Sprint("name", round)
		var first [callers]service.Sequencer
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { first[i], _ = s.Sequencer(context.Background(), name) })
		}
		wg.Wait()
		for i := range callers {
			if first[i].Source == nil || first[i].Source != first[0].Source {
				t.Fatalf("%s: caller %d got the source %v, caller 0 %v", name, i, first[i].Source, first[0].Source)
			}
		}
	}
	a, _ := s.Sequencer(context.Background(), "name0")
	b, _ := s.Sequencer(context.Background(), "name1")
	if a.Source == b.Source {
		t.Error("two names have the same generator")
	}
}

func TestStaticMaxNames(t *testing.T) {
	s, err := service.NewStatic(service.StaticConfig{MaxNames: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := s.Sequencer(context.Background(), fmt.Sprint("name", i)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Sequencer(context.Background(), "name3"); !errors.Is(err, service.ErrTooManyNames) {
		t.Errorf("a fourth name: %v, want ErrTooManyNames", err)
	}
	if _, err := s.Sequencer(context.Background(), "name2"); err != nil {
		t.Errorf("a name that there is: %v", err)
	}
	w := do(NewHandler(Config{Backend: s}), "GET", "/v1/sequencers/name3/next")
	wantProblem(t, w, service.TooManyNames, "3 names", "name3")
}

func TestNewStaticErrors(t *testing.T) {
	for _, c := range []service.StaticConfig{
		{Node: 1024},
		{Layout: firn.MustParseLayout("xid")},
		{Options: &firn.Options{MaxAhead: -1}},
		{Layout: firn.MustParseLayout("uuidv7"), Node: 1 << 16},
	} {
		if _, err := service.NewStatic(c); err == nil {
			t.Errorf("NewStatic(%+v): no error", c)
		}
	}
}
