package service

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/auth"
)

// TestStaticTable: a static server with the maximum number of names is small,
// serves all of them, and refuses others without counting a creation.
func TestStaticTable(t *testing.T) {
	const most = 4 << 10 // bytes per name
	s := must.Get(NewStaticBackend(StaticBackendConfig{}))(t)
	name := func(i int) string { return fmt.Sprintf("%0128d", i) }
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range DefaultMaxSequencers {
		must.Get(s.Sequencer(t.Context(), name(i), nil))(t)
	}
	if each := (heap() - before) / DefaultMaxSequencers; each > most {
		t.Errorf("a name costs %d bytes, want %d at most", each, most)
	}
	a := new(creators)
	find := func(name string) error {
		front := Front{Backend: s, Auth: a}
		_, err := front.open(t.Context(), &auth.Credentials{Token: "create"}, name, new(Request))
		return err
	}
	if err := find("a-new"); !errors.Is(err, ErrTooManyNames) || ProblemOf(err, time.Second, false).Kind != TooManyNames || a.asked.Load() != 0 {
		t.Errorf("one more: %v, want that there are too many; %d creations were counted", err, a.asked.Load())
	}
	if err := find(name(DefaultMaxSequencers - 1)); err != nil {
		t.Errorf("one of them: %v", err)
	}
}
