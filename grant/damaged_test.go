package grant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// A damagingStore has one value that it cannot read, once its key is set.
type damagingStore struct {
	*memstore.Store
	key atomic.Pointer[string]
}

var errCut = fmt.Errorf("%w: %w: the value is cut", grant.ErrNotSent, grant.ErrDamaged)

func (s *damagingStore) isDamaged(key string) bool {
	k := s.key.Load()
	return k != nil && *k == key
}

func (s *damagingStore) Get(ctx context.Context, key string) ([]byte, error) {
	if s.isDamaged(key) {
		return nil, errCut
	}
	return s.Store.Get(ctx, key)
}

func (s *damagingStore) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	values, err := s.Store.GetMany(ctx, keys)
	for i := range values {
		if s.isDamaged(keys[i]) {
			values[i] = []byte(errCut.Error())
		}
	}
	return values, err
}

func (s *damagingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if s.isDamaged(key) {
		return false, errCut
	}
	return s.Store.CAS(ctx, key, old, next)
}

func (s *damagingStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	return s.Store.List(ctx, prefix, func(key string, value []byte) bool {
		if s.isDamaged(key) {
			value = []byte(errCut.Error())
		}
		return yield(key, value)
	})
}

// A greedyHolder uses its windows up to their ends at once.
type greedyHolder struct {
	mu    sync.Mutex
	until time.Time
}

func (h *greedyHolder) Begin(g firn.Grant) error { return h.Extend(g.Until) }

func (h *greedyHolder) Extend(until time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
	return nil
}

func (h *greedyHolder) Seal() {}

func (h *greedyHolder) Used() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.until
}

// TestDamagedValue: a member whose record cannot be read acquires another node
// ID. The error of the store is shown, and a Destroy waits as long as the owner
// of the record may continue.
func TestDamagedValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &damagingStore{Store: new(memstore.Store)}
		info, err := grant.Create(t.Context(), s, "s", config("default,epoch=0"), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		m := grant.NewKeeper(s, grant.Settings{Name: "s"}, new(greedyHolder), nil)
		if err := errors.Join(m.Attach(t.Context()), m.Wait(t.Context(), phase(grant.Holding))); err != nil {
			t.Fatal(err)
		}
		was, _ := m.Status()
		key := fmt.Sprintf("v1/s/n/%04d", was.Node)
		s.key.Store(&key)
		time.Sleep(2 * info.Config.Window)
		if is, _ := m.Status(); is.Phase != grant.Holding || is.Node == was.Node || is.Err != nil {
			t.Errorf("the member has %+v, want a node ID other than %d", is, was.Node)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}

		n, err := grant.LookupNode(t.Context(), s, info, was.Node)
		if n.Node != was.Node || !errors.Is(err, grant.ErrDamaged) || !strings.Contains(err.Error(), "the value is cut") {
			t.Errorf("LookupNode = %+v, %v, want node ID %d and the store's error", n, err, was.Node)
		}
		var shown []error
		err = grant.Nodes(t.Context(), s, "s", func(n grant.NodeInfo, err error) bool {
			if n.Node == was.Node {
				shown = append(shown, err)
			}
			return true
		})
		if err != nil || len(shown) != 1 || !errors.Is(shown[0], grant.ErrDamaged) || !strings.Contains(shown[0].Error(), "the value is cut") {
			t.Errorf("Nodes shows %v and returns %v, want the store's error", shown, err)
		}

		var waited []uint64
		o := &grant.AdminOptions{Poll: time.Second, Waiting: func(all []grant.NodeInfo) {
			for _, n := range all {
				waited = append(waited, n.Node)
			}
		}}
		begin := time.Now()
		_, err = grant.Destroy(t.Context(), s, "s", o)
		// It may continue for so long, to the end of that millisecond.
		if took, want := time.Since(begin), info.Config.MaxAhead+info.LongestWindow+o.Poll; err != nil || took != want {
			t.Errorf("Destroy = %v after %v, want it after %v", err, took, want)
		}
		if waited = slices.Compact(waited); !slices.Equal(waited, []uint64{was.Node}) {
			t.Errorf("Destroy waits for %v, want %d", waited, was.Node)
		}
	})
}
