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
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/grant/storetest"
)

// optional are the interfaces that a Store may have, in the order of their bits below.
var optional = [...]string{"MultiGetter", "Watcher", "Lineage"}

// abilities are which of these a Store has, as bits.
func abilities(s grant.Store) (bits int) {
	if _, ok := s.(grant.MultiGetter); ok {
		bits |= 1
	}
	if _, ok := s.(grant.Watcher); ok {
		bits |= 2
	}
	if _, ok := s.(grant.Lineage); ok {
		bits |= 4
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

// A told Lineage says where it is.
type told struct{}

func (told) Lineage(context.Context) (string, int64, error) { return "here", 7, nil }

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
		want, err := grant.UsualConfig(s, firn.Default(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := grant.UsualConfig(Wrap(Wrap(s, silent), silent), firn.Default(), nil, nil); got != want || err != nil {
			t.Errorf("%T: %v, %v, want %v", s, got, err, want)
		}
	}
}

// TestWrap: a Store that is wrapped, also twice, can do what it could, and no more, and all
// calls are told.
func TestWrap(t *testing.T) {
	m := new(memstore.Store)
	type (
		store   struct{ grant.Store }
		many    struct{ grant.MultiGetter }
		watch   struct{ grant.Watcher }
		lineage struct{ told }
	)
	s, g, w, l := store{m}, many{m}, watch{m}, lineage{}
	for bits, of := range []grant.Store{
		s, struct {
			store
			many
		}{s, g}, struct {
			store
			watch
		}{s, w}, struct {
			store
			many
			watch
		}{s, g, w}, struct {
			store
			lineage
		}{s, l}, struct {
			store
			many
			lineage
		}{s, g, l}, struct {
			store
			watch
			lineage
		}{s, w, l}, struct {
			store
			many
			watch
			lineage
		}{s, g, w, l},
	} {
		if got := abilities(of); got != bits {
			t.Fatalf("the test's store has the abilities %03b, want %03b", got, bits)
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
		if got := abilities(s); got != bits {
			t.Errorf("wrapped it has the abilities %03b, want %03b", got, bits)
		}
		ctx := t.Context()
		_, _ = s.CAS(ctx, key, nil, []byte("a"))
		_, _ = s.CAS(ctx, key, nil, []byte("a"))
		if v, err := s.Get(ctx, key); string(v) != "a" || err != nil {
			t.Errorf("%03b: %q, %v", bits, v, err)
		}
		_ = s.List(ctx, key, func(string, []byte) bool { return true })
		want := []string{"cas " + key + " true <nil>", "cas " + key + " false <nil>", "get " + key + " false <nil>", "list " + key + " false <nil>"}
		if g, ok := s.(grant.MultiGetter); ok {
			if v, err := g.GetMany(ctx, []string{key}); err != nil || string(v[0]) != "a" {
				t.Errorf("%03b: %q, %v", bits, v, err)
			}
			want = append(want, "get many  false <nil>")
		}
		if l, ok := s.(grant.Lineage); ok {
			if name, n, err := l.Lineage(ctx); name != "here" || n != 7 || err != nil {
				t.Errorf("%03b: Lineage() = %q, %d, %v", bits, name, n, err)
			}
			want = append(want, "lineage  false <nil>")
		}
		if !slices.Equal(said, want) || outer != len(want) {
			t.Errorf("%03b: told %q and %d times, want %q", bits, said, outer, want)
		}
		if w, ok := s.(grant.Watcher); ok {
			ctx, stop := context.WithCancel(ctx)
			changed := w.Watch(ctx, key)
			if _, err := s.CAS(t.Context(), key, []byte("a"), []byte("b")); err != nil {
				t.Fatal(err)
			}
			<-changed
			stop()
		}
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
