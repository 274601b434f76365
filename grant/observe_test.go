package grant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
)

// A plain Store has no ability; a fixed one has a constant lineage, a constant
// clock, a danger, and a short window.
type (
	plain struct{ grant.Store }
	fixed struct{ grant.Store }
)

func (fixed) Lineage(context.Context) (string, int64, error) { return "here", 7, nil }

func (fixed) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Unix(1, 0), time.Second, nil
}

func (fixed) Dangers(context.Context) ([]string, error) { return []string{"full"}, nil }

func (fixed) Pace() grant.Pace { return grant.Pace{Window: 30 * time.Second} }

// TestObserve: an observed Store, even if observed twice, keeps its abilities,
// its dangers and its window, and its observers see all requests.
func TestObserve(t *testing.T) {
	m := new(memstore.Store)
	for i, inner := range []grant.Store{m, plain{m}, fixed{m}} {
		t.Run(fmt.Sprintf("%T", inner), func(t *testing.T) {
			ctx := t.Context()
			key := fmt.Sprint("k", i)
			var told []string
			outer := 0
			s := grant.Observe(inner, func(ctx context.Context, r grant.Request, k string) (context.Context, func(bool, error)) {
				return ctx, func(applied bool, err error) {
					told = append(told, fmt.Sprintf("%s %s %t %v", r, k, applied, err))
				}
			})
			s = grant.Observe(s, func(ctx context.Context, _ grant.Request, _ string) (context.Context, func(bool, error)) {
				return ctx, func(bool, error) { outer++ }
			})
			has := faultstore.Abilities(inner)
			with := has
			with[1] = true // it reports writes made through it
			if got := faultstore.Abilities(s); got != with {
				t.Errorf("it has the abilities %v, want %v", got, with)
			}
			if c, ok := grant.As[grant.Dangers](s); ok {
				if got, err := c.Dangers(ctx); !slices.Equal(got, []string{"full"}) || err != nil {
					t.Errorf("Dangers = %q, %v", got, err)
				}
			}
			want := grant.DefaultConfig(inner, firn.Default(), nil)
			if got := grant.DefaultConfig(s, firn.Default(), nil); got != want {
				t.Errorf("DefaultConfig = %v, want %v", got, want)
			}

			_, _ = s.CAS(ctx, key, nil, []byte("a"))
			_, _ = s.CAS(ctx, key, nil, []byte("a"))
			if v, err := s.Get(ctx, key); string(v) != "a" || err != nil {
				t.Errorf("Get = %q, %v", v, err)
			}
			_ = s.List(ctx, key, func(string, []byte) bool { return true })
			wantTold := []string{"cas " + key + " true <nil>", "cas " + key + " false <nil>", "get " + key + " false <nil>", "list " + key + " false <nil>"}
			ability := func(i int, what string, err error, good bool) {
				t.Helper()
				switch {
				case has[i] && (err != nil || !good):
					t.Errorf("%s = %v, or a wrong answer", what, err)
				case has[i]:
					wantTold = append(wantTold, what+"  false <nil>")
				case !errors.Is(err, errors.ErrUnsupported):
					t.Errorf("%s = %v, want errors.ErrUnsupported", what, err)
				}
			}
			v, err := s.(grant.MultiGetter).GetMany(ctx, []string{key, "absent"})
			ability(0, "get many", err, len(v) == 2 && string(v[0]) == "a" && v[1] == nil)
			identity, revision, err := s.(grant.Lineage).Lineage(ctx)
			ability(2, "lineage", err, identity == "here" && revision == 7)
			now, resolution, err := s.(grant.Clock).Time(ctx)
			ability(3, "time", err, now.Equal(time.Unix(1, 0)) && resolution == time.Second)
			if !slices.Equal(told, wantTold) || outer != len(wantTold) {
				t.Errorf("told %q and %d times, want %q", told, outer, wantTold)
			}

			watching, stop := context.WithCancel(ctx)
			defer stop()
			changed := s.(grant.Watcher).Watch(watching, key)
			must.Get(s.CAS(ctx, key, []byte("a"), []byte("b")))(t)
			if _, told := <-changed; !told {
				t.Error("Watch does not tell of a change")
			}
			stop()
			for range changed {
			}
		})
	}
}
