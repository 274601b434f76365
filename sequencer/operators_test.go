package sequencer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/sequencer"
)

// A longListStore is a store with so many records that a List takes a second.
type longListStore struct{ *memstore.Store }

func (s longListStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	time.Sleep(time.Second)
	return s.Store.List(ctx, prefix, yield)
}

// TestOperatorsAtOnce: operators that destroy or detach the same sequencer at
// the same time do not undo each other's steps forever.
func TestOperatorsAtOnce(t *testing.T) {
	for what, empty := range map[string]func(context.Context, grant.Store, string, *grant.AdminOptions) (grant.Info, error){
		"destroy": grant.Destroy, "detach": grant.DetachAll,
	} {
		for operators := 2; operators <= 4; operators++ {
			synctest.Test(t, func(t *testing.T) {
				s := new(memstore.Store)
				layout := firn.MustParseLayout("default,epoch=1999-01-01T00:00:00Z")
				q, err := sequencer.Open(t.Context(), s, "orders", &sequencer.Config{Layout: layout})
				if err != nil {
					t.Fatal(err)
				}
				if err := q.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var running sync.WaitGroup
				for i := range operators {
					running.Go(func() {
						time.Sleep(time.Duration(i) * 700 * time.Millisecond)
						if _, err := empty(ctx, longListStore{s}, "orders", nil); err != nil {
							t.Errorf("%s by operator %d of %d: %v", what, i, operators, err)
						}
					})
				}
				running.Wait()
			})
		}
	}
}
