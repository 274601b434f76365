package stores

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/grant/storetest"
)

// optional are the interfaces that a Store may have, in the order of their bits below.
var optional = [...]string{"MultiGetter", "Watcher", "Lineage", "Clock"}

// abilities are which of these a Store has, as bits.
func abilities(s grant.Store) (bits int) {
	_, many := s.(grant.MultiGetter)
	_, watch := s.(grant.Watcher)
	_, line := s.(grant.Lineage)
	_, time := s.(grant.Clock)
	for i, has := range [len(optional)]bool{many, watch, line, time} {
		if has {
			bits |= 1 << i
		}
	}
	return bits
}

// TestOptional: these are all interfaces that package grant declares beside Store for
// stores. One more must be passed on by Wrap, or what rests on it ends unseen.
func TestOptional(t *testing.T) {
	const source = "../../grant/store.go"
	if _, err := os.Stat(source); err != nil {
		t.Skip("the module stands alone, without package grant's source")
	}
	f, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok {
			if _, ok := s.Type.(*ast.InterfaceType); ok && s.Name.Name != "Store" {
				found = append(found, s.Name.Name)
			}
		}
		return true
	})
	if !slices.Equal(found, optional[:]) {
		t.Errorf("package grant has the interfaces %q, and Wrap knows %q", found, optional)
	}
}

// The fixed ones always give the same answer.
type (
	fixedLineage struct{}
	fixedClock   struct{}
)

func (fixedLineage) Lineage(context.Context) (string, int64, error) { return "here", 7, nil }

func (fixedClock) Time(context.Context) (time.Time, time.Duration, error) {
	return time.Unix(1, 0), time.Second, nil
}

// A brief Store has sequencers with shorter windows.
type brief struct{ grant.Store }

func (brief) Window() time.Duration { return 30 * time.Second }

// TestWrapWindow: the usual window of a Store is that of the wrapped one.
func TestWrapWindow(t *testing.T) {
	silent := func(ctx context.Context, _, _ string) (context.Context, func(bool, error)) {
		return ctx, func(bool, error) {}
	}
	m := new(memstore.Store)
	for _, s := range []grant.Store{m, brief{m}} {
		want, err := grant.DefaultConfig(s, firn.Default(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := grant.DefaultConfig(Wrap(Wrap(s, silent), silent), firn.Default(), nil, nil); got != want || err != nil {
			t.Errorf("%T: %v, %v, want %v", s, got, err, want)
		}
	}
}

// TestWrap: a Store that is wrapped, also twice, has the identity and the time that it had, and
// none that it had not; it reads many keys and can be watched in any case; all calls are told.
func TestWrap(t *testing.T) {
	const always = 1 | 2 // of the abilities
	m := new(memstore.Store)
	type (
		store   struct{ grant.Store }
		many    struct{ grant.MultiGetter }
		watch   struct{ grant.Watcher }
		lineage struct{ fixedLineage }
		clock   struct{ fixedClock }
	)
	s, g, w, l, c := store{m}, many{m}, watch{m}, lineage{}, clock{}
	of := map[int]grant.Store{
		0: s,
		1: struct {
			store
			many
		}{s, g},
		2: struct {
			store
			watch
		}{s, w},
		4: struct {
			store
			lineage
		}{s, l},
		8: struct {
			store
			clock
		}{s, c},
		12: struct {
			store
			lineage
			clock
		}{s, l, c},
		15: struct {
			store
			many
			watch
			lineage
			clock
		}{s, g, w, l, c},
	}
	for bits, of := range of {
		if got := abilities(of); got != bits {
			t.Fatalf("the test's store has the abilities %04b, want %04b", got, bits)
		}
		key := fmt.Sprint("k", bits)
		var said []string
		outer := 0
		s := Wrap(of, func(ctx context.Context, what, k string) (context.Context, func(bool, error)) {
			return ctx, func(applied bool, err error) { said = append(said, fmt.Sprintf("%s %s %t %v", what, k, applied, err)) }
		})
		s = Wrap(s, func(ctx context.Context, _, _ string) (context.Context, func(bool, error)) {
			return ctx, func(bool, error) { outer++ }
		})
		if got := abilities(s); got != bits|always {
			t.Errorf("wrapped it has the abilities %04b, want %04b", got, bits|always)
		}
		ctx := t.Context()
		_, _ = s.CAS(ctx, key, nil, []byte("a"))
		_, _ = s.CAS(ctx, key, nil, []byte("a"))
		if v, err := s.Get(ctx, key); string(v) != "a" || err != nil {
			t.Errorf("%04b: %q, %v", bits, v, err)
		}
		_ = s.List(ctx, key, func(string, []byte) bool { return true })
		want := []string{"cas " + key + " true <nil>", "cas " + key + " false <nil>", "get " + key + " false <nil>", "list " + key + " false <nil>"}
		if v, err := s.(grant.MultiGetter).GetMany(ctx, []string{key, "absent"}); err != nil || len(v) != 2 || string(v[0]) != "a" || v[1] != nil {
			t.Errorf("%04b: GetMany = %q, %v", bits, v, err)
		}
		wantOuter := 5
		if bits&1 != 0 {
			want = append(want, "get many  false <nil>")
		} else {
			want = append(want, "get "+key+" false <nil>", "get absent false <nil>")
		}
		if l, ok := s.(grant.Lineage); ok {
			if name, n, err := l.Lineage(ctx); name != "here" || n != 7 || err != nil {
				t.Errorf("%04b: Lineage() = %q, %d, %v", bits, name, n, err)
			}
			want = append(want, "lineage  false <nil>")
			wantOuter++
		}
		if c, ok := s.(grant.Clock); ok {
			if now, resolution, err := c.Time(ctx); !now.Equal(time.Unix(1, 0)) || resolution != time.Second || err != nil {
				t.Errorf("%04b: Time() = %v, %v, %v", bits, now, resolution, err)
			}
			want = append(want, "time  false <nil>")
			wantOuter++
		}
		if !slices.Equal(said, want) || outer != wantOuter {
			t.Errorf("%04b: told %q and %d times, want %q", bits, said, outer, want)
		}
		watching, stop := context.WithCancel(ctx)
		changed := s.(grant.Watcher).Watch(watching, key)
		if _, err := s.CAS(ctx, key, []byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		if _, told := <-changed; told != (bits&2 != 0) {
			t.Errorf("%04b: Watch tells of a change: %t", bits, told)
		}
		stop()
		_ = map[grant.Store]bool{s: true} // does not panic: a pointer can be compared
	}
}

// TestWrapSuite: the conformance suite of stores.
func TestWrapSuite(t *testing.T) {
	var mu sync.Mutex
	calls := 0
	storetest.Run(t, func(*testing.T) grant.Store {
		return Wrap(new(memstore.Store), func(ctx context.Context, _, _ string) (context.Context, func(bool, error)) {
			return ctx, func(bool, error) { mu.Lock(); calls++; mu.Unlock() }
		})
	})
	if calls == 0 {
		t.Error("no call was told")
	}
}

// TestAnswers: what counts is the last call that was not given up.
func TestAnswers(t *testing.T) {
	var a Answers
	fail := errors.New("away")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for i, step := range []struct {
		ctx       context.Context
		err       error
		up, known bool
	}{
		{cancelled, context.Canceled, false, false},
		{t.Context(), nil, true, true}, {cancelled, context.Canceled, true, true}, {t.Context(), fail, false, true},
		{cancelled, context.Canceled, false, true}, {t.Context(), nil, true, true}, {late, context.DeadlineExceeded, false, true}, {cancelled, nil, true, true},
	} {
		_, end := a.Begin(step.ctx, Get, "k")
		end(false, step.err)
		if up, known := a.Up(); up != step.up || known != step.known {
			t.Errorf("step %d: up %t, known %t", i, up, known)
		}
	}
}

// TestSilent: how long a store has been silent is what calls have shown, apart for reads and
// writes.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a Answers
		fail := errors.New("away")
		call := func(what string, took time.Duration, err error) {
			_, end := a.Begin(t.Context(), what, "k")
			time.Sleep(took)
			end(false, err)
		}
		want := func(what string, reads, writes time.Duration) {
			t.Helper()
			if r, w := a.Silent(); r != reads || w != writes {
				t.Errorf("%s: silent for %v and %v, want %v and %v", what, r, w, reads, writes)
			}
		}
		want("no call", 0, 0)
		call(Get, time.Second, nil)
		want("one that was answered", 0, 0)
		call(List, 5*time.Second, fail)
		want("one that was not", 5*time.Second, 0)
		call(CAS, 2*time.Second, fail)
		call(Lineage, time.Second, fail)
		want("three", 8*time.Second, 2*time.Second)
		call(Get, 0, nil)
		want("it is there again, and may take writes", 0, 0)
		call(CAS, 2*time.Second, fail)
		call(Get, 0, nil)
		want("it takes none", 0, 2*time.Second)
		_, end := a.Begin(t.Context(), GetMany, "")
		time.Sleep(3 * time.Second)
		want("one is under way", 3*time.Second, 2*time.Second)
		call(Get, 0, nil)
		want("another was answered meanwhile", 0, 2*time.Second)
		time.Sleep(2 * time.Second)
		want("none since", 2*time.Second, 2*time.Second)
		end(false, fail)
		want("it has failed", 2*time.Second, 2*time.Second)
		time.Sleep(silentFor)
		want("nothing is known any more of writes", 2*time.Second, 0)
		time.Sleep(time.Second)
		want("nor of reads", 0, 0)
		gone, cancel := context.WithCancel(t.Context())
		_, end = a.Begin(gone, CAS, "k")
		time.Sleep(time.Second)
		cancel()
		end(false, fail)
		want("one that was given up", 0, 0)
		call(CAS, time.Second, nil)
		want("all well", 0, 0)
		call(Get, time.Second, fail)
		call(CAS, 0, nil)
		want("what it writes it can read", 0, 0)
		call(Get, time.Second, fail)
		time.Sleep(time.Minute)
		call(Get, time.Second, fail)
		want("what failed long ago does not count", time.Second, 0)
	})
}
