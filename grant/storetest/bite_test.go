package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

// A database is what stores of one open call share: a memstore that has every
// optional interface, and what broken stores need to be broken.
type database struct {
	memstore.Store
	mu       sync.Mutex
	revision int64
	before   map[string][]byte          // the value before the last one, by key
	changed  map[string]time.Time       // of the last one
	retired  map[string]map[string]bool // all values that were replaced
	shared   map[string][]byte          // values that were not copied
}

// A brokenStore is one Store over a database, with all optional interfaces. It
// is broken by what is set in it.
type brokenStore struct {
	db     *database
	closed atomic.Bool
	cache  sync.Map // for some of the broken stores
	breakage
}

// A breakage is what a brokenStore does instead of what it should.
type breakage struct {
	hangs bool // instead of failing at once

	brokenGet     func(w *brokenStore, ctx context.Context, key string) ([]byte, error)
	brokenCAS     func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error)
	brokenList    func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error
	brokenMany    func(w *brokenStore, ctx context.Context, keys []string) ([][]byte, error)
	brokenWatch   func(w *brokenStore, ctx context.Context, key string) <-chan struct{}
	brokenLineage func(w *brokenStore) (string, int64, error)
	brokenTime    func(w *brokenStore, ctx context.Context) (time.Time, time.Duration, error)
	brokenClose   func(w *brokenStore) error
}

func (w *brokenStore) refuse() error {
	if w.closed.Load() {
		return fmt.Errorf("%w: closed", grant.ErrNotSent)
	}
	return nil
}

func (w *brokenStore) get(ctx context.Context, key string) ([]byte, error) {
	if err := w.refuse(); err != nil {
		return nil, err
	}
	return w.db.Get(ctx, key)
}

func (w *brokenStore) cas(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := w.refuse(); err != nil {
		return false, err
	}
	db := w.db
	db.mu.Lock()
	defer db.mu.Unlock()
	ok, err := db.CAS(ctx, key, old, next)
	if ok {
		db.revision++
		if db.before == nil {
			db.before, db.changed, db.retired = make(map[string][]byte), make(map[string]time.Time), make(map[string]map[string]bool)
		}
		db.before[key], db.changed[key] = bytes.Clone(old), time.Now()
		if db.retired[key] == nil {
			db.retired[key] = make(map[string]bool)
		}
		db.retired[key][string(old)] = true
	}
	return ok, err
}

func (w *brokenStore) list(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if err := w.refuse(); err != nil {
		return err
	}
	return w.db.List(ctx, prefix, yield)
}

func (w *brokenStore) many(ctx context.Context, keys []string) ([][]byte, error) {
	if err := w.refuse(); err != nil {
		return nil, err
	}
	return w.db.GetMany(ctx, keys)
}

// put replaces the value whatever it is.
func (w *brokenStore) put(ctx context.Context, key string, next []byte) error {
	for {
		now, err := w.get(ctx, key)
		if err != nil {
			return err
		}
		if ok, err := w.cas(ctx, key, now, next); ok || err != nil {
			return err
		}
	}
}

func (w *brokenStore) Get(ctx context.Context, key string) ([]byte, error) {
	if w.brokenGet != nil {
		return w.brokenGet(w, ctx, key)
	}
	return w.get(ctx, key)
}

func (w *brokenStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if w.brokenCAS != nil {
		return w.brokenCAS(w, ctx, key, old, next)
	}
	return w.cas(ctx, key, old, next)
}

func (w *brokenStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	if w.brokenList != nil {
		return w.brokenList(w, ctx, prefix, yield)
	}
	return w.list(ctx, prefix, yield)
}

func (w *brokenStore) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	if w.brokenMany != nil {
		return w.brokenMany(w, ctx, keys)
	}
	return w.many(ctx, keys)
}

func (w *brokenStore) Watch(ctx context.Context, key string) <-chan struct{} {
	if w.brokenWatch != nil {
		return w.brokenWatch(w, ctx, key)
	}
	return w.db.Watch(ctx, key)
}

func (w *brokenStore) Lineage(ctx context.Context) (string, int64, error) {
	if err := ctx.Err(); err != nil {
		return "", 0, err
	}
	if w.brokenLineage != nil {
		return w.brokenLineage(w)
	}
	w.db.mu.Lock()
	defer w.db.mu.Unlock()
	return "one", w.db.revision, nil
}

func (w *brokenStore) time(ctx context.Context) (time.Time, time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, 0, fmt.Errorf("%w: %w", grant.ErrNotSent, err)
	}
	return time.Now(), time.Nanosecond, w.refuse()
}

func (w *brokenStore) Time(ctx context.Context) (time.Time, time.Duration, error) {
	if w.brokenTime != nil {
		return w.brokenTime(w, ctx)
	}
	return w.time(ctx)
}

func (w *brokenStore) Close() error {
	if w.brokenClose != nil {
		return w.brokenClose(w)
	}
	w.closed.Store(true)
	return nil
}

// matching breaks how CAS compares: it is applied if same returns true.
func matching(same func(now, old string) bool) breakage {
	return breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
		if err := grant.CheckValue(next); err != nil {
			return false, err
		}
		for {
			now, err := w.get(ctx, key)
			if err != nil || !bytes.Equal(now, old) && !same(string(now), string(old)) {
				return false, err
			}
			if ok, err := w.cas(ctx, key, now, next); ok || err != nil {
				return ok, err
			}
		}
	}}
}

// renaming breaks keys: those with the same name are taken for one.
func renaming(name func(key string) string) breakage {
	return breakage{
		brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
			if err := grant.CheckKey(key); err != nil {
				return nil, err
			}
			return w.get(ctx, name(key))
		},
		brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			if err := grant.CheckKey(key); err != nil {
				return false, err
			}
			return w.cas(ctx, name(key), old, next)
		},
	}
}

// storing breaks values: another one is stored.
func storing(other func(value []byte) []byte) breakage {
	return breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
		if err := grant.CheckValue(next); err != nil {
			return false, err
		}
		if len(old) > 0 {
			old = other(old)
		}
		return w.cas(ctx, key, old, other(next))
	}}
}

type pair struct {
	key   string
	value []byte
}

// listing breaks List: it yields other keys, or in another order. Given are all
// keys of the store.
func listing(change func(all []pair, prefix string) []pair) breakage {
	return breakage{brokenList: func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error {
		var all []pair
		err := w.list(ctx, "", func(key string, value []byte) bool {
			all = append(all, pair{key, value})
			return true
		})
		if err != nil {
			return err
		}
		for _, p := range change(all, prefix) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(p.key, p.value) {
				break
			}
		}
		return nil
	}}
}

func having(all []pair, has func(key string) bool) []pair {
	return slices.DeleteFunc(all, func(p pair) bool { return !has(p.key) })
}

// sorted returns what List shall yield, in another order.
func sorted(compare func(a, b string) int) breakage {
	return listing(func(all []pair, prefix string) []pair {
		all = having(all, func(key string) bool { return strings.HasPrefix(key, prefix) })
		slices.SortStableFunc(all, func(a, b pair) int { return compare(a.key, b.key) })
		return all
	})
}

// everyTenth is true at every tenth call for which a CAS would be applied.
func everyTenth() func() bool {
	var n atomic.Int64
	return func() bool { return n.Add(1)%10 == 0 }
}

// broken returns stores that break the contract in one way each, and the tests
// of the suite that must catch each.
func broken() []struct {
	name   string
	caught string // names of tests, separated by commas
	breakage
} {
	tenth := everyTenth()
	var locks sync.Map
	lockOf := func(w *brokenStore) *sync.Mutex {
		mu, _ := locks.LoadOrStore(w, new(sync.Mutex))
		return mu.(*sync.Mutex)
	}
	return []struct {
		name   string
		caught string
		breakage
	}{
		// What CAS compares.
		{"an old value of nil matches any", "create,creators,histories", matching(func(_, old string) bool { return old == "" })},
		{"absent matches any old value", "refused,histories", matching(func(now, _ string) bool { return now == "" })},
		{"any old value matches", "refused,compare bytes,histories,create", matching(func(_, _ string) bool { return true })},
		{"compares the beginning", "compare bytes", matching(func(now, old string) bool { return old != "" && strings.HasPrefix(now, old) })},
		{"compares revisions", "compare value not revision,histories", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			w.db.mu.Lock()
			was := w.db.retired[key][string(old)]
			w.db.mu.Unlock()
			if was {
				return false, ctx.Err()
			}
			return w.cas(ctx, key, old, next)
		}}},

		// What CAS does, and what it says.
		{"loses updates", "increments,creators,histories", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			now, err := w.get(ctx, key)
			if err != nil || !bytes.Equal(now, old) {
				return false, err
			}
			if err := grant.CheckValue(next); err != nil {
				return false, err
			}
			runtime.Gosched()
			return true, w.put(ctx, key, next)
		}}},
		{"two stores do not exclude each other", "two at once", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			mu := lockOf(w)
			mu.Lock()
			defer mu.Unlock()
			now, err := w.get(ctx, key)
			if err != nil || !bytes.Equal(now, old) {
				return false, err
			}
			if err := grant.CheckValue(next); err != nil {
				return false, err
			}
			runtime.Gosched()
			return true, w.put(ctx, key, next)
		}}},
		{"says refused and has applied", "increments,histories,replace", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			ok, err := w.cas(ctx, key, old, next)
			return ok && !tenth(), err
		}}},
		{"says applied and has not", "increments,histories,replace", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			if now, _ := w.get(ctx, key); bytes.Equal(now, old) && tenth() {
				return true, grant.CheckValue(next)
			}
			return w.cas(ctx, key, old, next)
		}}},
		{"keys without case", "keys", renaming(strings.ToLower)},
		{"writes to a neighbour too", "replace,keys", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			ok, err := w.cas(ctx, key, old, next)
			if ok && key == "a" {
				err = w.put(ctx, "b", next)
			}
			return ok, err
		}}},
		{"Get remembers what this store wrote", "two at once", breakage{
			brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
				if v, ok := w.cache.Load(key); ok && ctx.Err() == nil && w.refuse() == nil {
					return bytes.Clone(v.([]byte)), nil
				}
				return w.get(ctx, key)
			},
			brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
				ok, err := w.cas(ctx, key, old, next)
				if ok {
					w.cache.Store(key, bytes.Clone(next))
				}
				return ok, err
			},
		}},
		{"absent is not nil", "absent", breakage{brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
			v, err := w.get(ctx, key)
			if v == nil {
				v = []byte{}
			}
			return v, err
		}}},
		{"Get creates", "absent,keys", breakage{brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
			v, err := w.get(ctx, key)
			if v == nil && err == nil {
				_, err = w.cas(ctx, key, nil, []byte("{}"))
			}
			return v, err
		}}},

		// Whose a slice is.
		{"keeps the value it is given", "arguments are the caller's", breakage{
			brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
				v, err := w.get(ctx, key)
				w.db.mu.Lock()
				defer w.db.mu.Unlock()
				if mine, ok := w.db.shared[key]; ok && err == nil {
					v = bytes.Clone(mine)
				}
				return v, err
			},
			brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
				ok, err := w.cas(ctx, key, old, next)
				w.db.mu.Lock()
				defer w.db.mu.Unlock()
				if ok {
					if w.db.shared == nil {
						w.db.shared = make(map[string][]byte)
					}
					w.db.shared[key] = next
				}
				return ok, err
			},
		}},
		{"Get gives away what is stored", "results are the caller's", breakage{
			brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
				v, err := w.get(ctx, key)
				if err != nil || v == nil {
					return v, err
				}
				kept, _ := w.cache.LoadOrStore(key+"\x00"+string(v), v)
				return kept.([]byte), nil
			},
		}},
		{"Get reuses its buffer", "results are the caller's", breakage{
			brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
				v, err := w.get(ctx, key)
				if err != nil || v == nil {
					return v, err
				}
				buf, _ := w.cache.LoadOrStore("", make([]byte, 0, 1<<16))
				return append(buf.([]byte)[:0], v...), nil
			},
		}},
		{"CAS scribbles on old", "arguments are the caller's", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			defer clear(old)
			return w.cas(ctx, key, old, next)
		}}},

		// Values.
		{"takes empty values", "bad values", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			if len(next) == 0 {
				next = []byte("{}")
			}
			return w.cas(ctx, key, old, next)
		}}},
		{"takes long values", "bad values", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			return w.cas(ctx, key, old, next[:min(len(next), grant.MaxValue)])
		}}},
		{"cuts long values", "values,replace", storing(func(v []byte) []byte { return v[:min(len(v), 1024)] })},
		{"cuts spaces at the end", "values", storing(func(v []byte) []byte { return append(bytes.TrimRight(v, " "), make([]byte, 0, 1)...) })},
		{"takes any key", "bad keys", func() breakage {
			hexed := func(key string) string { return fmt.Sprintf("h%x", key[:min(len(key), 100)]) }
			return breakage{
				brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) { return w.get(ctx, hexed(key)) },
				brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
					return w.cas(ctx, hexed(key), old, next)
				},
			}
		}()},
		{"a bad key is an error like any", "bad keys", breakage{brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
			if grant.CheckKey(key) != nil {
				return nil, errors.New("bad key")
			}
			return w.get(ctx, key)
		}}},

		// List.
		{"List in no order", "list prefix,keys", sorted(func(a, b string) int {
			return strings.Compare(fmt.Sprint(len(a)%7, a), fmt.Sprint(len(b)%7, b))
		})},
		{"List backwards", "list prefix,list long,list stops,list and changes", sorted(func(a, b string) int { return strings.Compare(b, a) })},
		{"List of one page", "list long", listing(func(all []pair, prefix string) []pair {
			all = having(all, func(key string) bool { return strings.HasPrefix(key, prefix) })
			return all[:min(len(all), 1000)]
		})},
		{"List does not stop", "list stops", breakage{brokenList: func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error {
			return w.list(ctx, prefix, func(key string, value []byte) bool { yield(key, value); return true })
		}}},
		{"List holds a lock", "list yield uses the store", breakage{
			hangs: true,
			brokenList: func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error {
				lockOf(w).Lock()
				defer lockOf(w).Unlock()
				return w.list(ctx, prefix, yield)
			},
			brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
				lockOf(w).Lock()
				defer lockOf(w).Unlock()
				return w.cas(ctx, key, old, next)
			},
		}},
		{"List of a while ago", "list and changes", func() breakage {
			var mu sync.Mutex
			before := make(map[string][]pair) // what was there at the last call, by prefix
			return listing(func(all []pair, prefix string) []pair {
				mu.Lock()
				defer mu.Unlock()
				what, ok := before[prefix]
				if !ok {
					what = all
				}
				before[prefix] = slices.Clone(all)
				return having(slices.Clone(what), func(key string) bool { return strings.HasPrefix(key, prefix) })
			})
		}()},
		{"List ends early without an error", "context done in list", breakage{brokenList: func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%w: %w", grant.ErrNotSent, err)
			}
			return w.list(context.WithoutCancel(ctx), prefix, func(key string, value []byte) bool { return ctx.Err() == nil && yield(key, value) })
		}}},
		{"List says another error", "context done in list", breakage{brokenList: func(w *brokenStore, ctx context.Context, prefix string, yield func(string, []byte) bool) error {
			if err := w.list(ctx, prefix, yield); err != nil {
				return fmt.Errorf("%w: list: %v", grant.ErrNotSent, err)
			}
			return nil
		}}},

		// The context.
		{"no context", "context done before", breakage{
			brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
				return w.cas(context.WithoutCancel(ctx), key, old, next)
			},
		}},
		{"Get without context", "context done before", breakage{
			brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
				return w.get(context.WithoutCancel(ctx), key)
			},
		}},
		{"says not sent and has applied", "context done meanwhile,histories", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			ok, err := w.cas(ctx, key, old, next)
			<-time.After(50 * time.Microsecond)
			if ctx.Err() != nil {
				return false, fmt.Errorf("%w: %w", grant.ErrNotSent, ctx.Err())
			}
			return ok, err
		}}},
		{"says refused when the context ends", "context done meanwhile", breakage{brokenCAS: func(w *brokenStore, ctx context.Context, key string, old, next []byte) (bool, error) {
			<-time.After(50 * time.Microsecond)
			ok, err := w.cas(ctx, key, old, next)
			if ctx.Err() != nil {
				return false, nil
			}
			return ok, err
		}}},

		// Close.
		{"continues after Close", "close,close meanwhile", breakage{brokenClose: func(*brokenStore) error { return nil }}},
		{"an error like any after Close", "close,close meanwhile", breakage{brokenGet: func(w *brokenStore, ctx context.Context, key string) ([]byte, error) {
			if w.closed.Load() {
				return nil, errors.New("closed")
			}
			return w.get(ctx, key)
		}}},
		{"Close loses the last value", "reopen,close,close meanwhile", breakage{brokenClose: func(w *brokenStore) error {
			if !w.closed.Load() {
				w.db.mu.Lock()
				before := maps.Clone(w.db.before)
				w.db.mu.Unlock()
				for key, value := range before {
					if len(value) > 0 {
						_ = w.put(context.Background(), key, value)
					}
				}
			}
			w.closed.Store(true)
			return nil
		}}},

		// The optional interfaces.
		{"GetMany in the order of the keys", "get many", breakage{brokenMany: func(w *brokenStore, ctx context.Context, keys []string) ([][]byte, error) {
			return w.many(ctx, slices.Sorted(slices.Values(keys)))
		}}},
		{"GetMany without the absent", "get many", breakage{brokenMany: func(w *brokenStore, ctx context.Context, keys []string) ([][]byte, error) {
			values, err := w.many(ctx, keys)
			return slices.DeleteFunc(values, func(v []byte) bool { return v == nil }), err
		}}},
		{"GetMany reads the last key first", "get many in order", breakage{brokenMany: func(w *brokenStore, ctx context.Context, keys []string) ([][]byte, error) {
			values := make([][]byte, len(keys))
			for i, key := range slices.Backward(keys) {
				v, err := w.get(ctx, key)
				if err != nil {
					return nil, err
				}
				values[i] = v
				<-time.After(50 * time.Microsecond)
			}
			return values, nil
		}}},
		{"Watch for ever", "watch", breakage{brokenWatch: func(*brokenStore, context.Context, string) <-chan struct{} { return make(chan struct{}) }}},
		{"Watch of a nil channel", "watch", breakage{brokenWatch: func(*brokenStore, context.Context, string) <-chan struct{} { return nil }}},
		{"another identity each time", "lineage", func() breakage {
			var n atomic.Int64
			return breakage{brokenLineage: func(*brokenStore) (string, int64, error) { return fmt.Sprint(n.Add(1)), 0, nil }}
		}()},
		{"the revision stands still", "lineage", breakage{brokenLineage: func(*brokenStore) (string, int64, error) { return "one", 7, nil }}},
		{"the clock stands still", "clock", func() breakage {
			began := time.Now()
			return breakage{brokenTime: func(w *brokenStore, ctx context.Context) (time.Time, time.Duration, error) {
				_, resolution, err := w.time(ctx)
				return began, resolution, err
			}}
		}()},
		{"the clock goes back", "clock", func() breakage {
			began := time.Now()
			return breakage{brokenTime: func(w *brokenStore, ctx context.Context) (time.Time, time.Duration, error) {
				now, resolution, err := w.time(ctx)
				return began.Add(-now.Sub(began)), resolution, err
			}}
		}()},
	}
}

// TestWhole shows that the store which the broken ones are made of passes.
func TestWhole(t *testing.T) {
	RunWith(t, func(*testing.T) grant.Store { return &brokenStore{db: new(database)} }, &Options{
		Reopen: func(_ *testing.T, first grant.Store) grant.Store { return &brokenStore{db: first.(*brokenStore).db} },
		Time:   100 * time.Millisecond,
	})
}

// TestBrokenStores runs the suite on stores that are broken in one way each.
// Each must fail the tests it names, and each test must be named.
func TestBrokenStores(t *testing.T) {
	var mu sync.Mutex
	catches := make(map[string]int)
	var table []string
	t.Run("stores", func(t *testing.T) {
		for _, b := range broken() {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				open := func(db *database) grant.Store {
					return &brokenStore{db: db, breakage: b.breakage}
				}
				su := suite{
					open:   func(tb) grant.Store { return open(new(database)) },
					reopen: func(_ tb, first grant.Store) grant.Store { return open(first.(*brokenStore).db) },
					time:   5 * time.Second, // they end at the first failure
					busy:   50 * time.Millisecond,
					soon:   100 * time.Millisecond,
				}
				for name := range strings.SplitSeq(b.caught, ",") {
					i := slices.IndexFunc(cases(), func(c testCase) bool { return c.name == name })
					if i < 0 {
						t.Fatalf("there is no test %q", name)
					}
					limit := 20 * time.Second
					if b.hangs {
						limit = 300 * time.Millisecond
					}
					failed, said := try(t, cases()[i], su, limit)
					if hung := strings.HasSuffix(said, "it hangs"); hung != b.hangs && failed {
						t.Errorf("test %q hangs: %v, want %v", name, hung, b.hangs)
					}
					if !failed {
						t.Errorf("test %q passes, want it to fail; it said: %s", name, said)
						continue
					}
					mu.Lock()
					catches[name]++
					table = append(table, fmt.Sprintf("%-45s %-26s %s", b.name, name, said))
					mu.Unlock()
				}
			})
		}
	})
	for _, c := range cases() {
		if catches[c.name] == 0 {
			t.Errorf("no broken store fails test %q", c.name)
		}
	}
	slices.Sort(table)
	t.Logf("what the tests say of broken stores:\n%s", strings.Join(table, "\n"))
	if !t.Failed() {
		t.Logf("report: %d broken stores are caught, by %d tests of the suite", len(broken()), len(catches))
	}
}

// try runs one test of the suite where it may fail, and returns what it said
// first. A test that hangs has failed too.
func try(t *testing.T, c testCase, su suite, limit time.Duration) (failed bool, said string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &recordingTB{ctx: ctx}
	done := make(chan struct{})
	go func() { // Fatalf ends it
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				p.Errorf("panic: %v", r)
			}
		}()
		defer p.cleanUp()
		c.run(p, su)
	}()
	select {
	case <-done:
	case <-time.After(limit):
		p.Errorf("it hangs")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	said, _, _ = strings.Cut(strings.Join(p.said, "; "), "\n")
	return p.failed, said[:min(len(said), 160)]
}

// A recordingTB is a tb whose failure does not fail the test.
type recordingTB struct {
	ctx context.Context

	mu       sync.Mutex
	cleanups []func()
	failed   bool
	said     []string
}

func (p *recordingTB) Helper()                  {}
func (p *recordingTB) Context() context.Context { return p.ctx }

func (p *recordingTB) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *recordingTB) cleanUp() {
	for _, f := range slices.Backward(p.cleanups) {
		f()
	}
}

func (p *recordingTB) Logf(string, ...any) {}

func (p *recordingTB) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

func (p *recordingTB) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *recordingTB) Skip(args ...any) {
	p.mu.Lock()
	p.said = append(p.said, fmt.Sprint(args...))
	p.mu.Unlock()
	runtime.Goexit()
}

func (p *recordingTB) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}
