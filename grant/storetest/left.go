package storetest

import (
	"context"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/left"
)

// testNothingLeft makes each kind of call many times, with each end that it can
// have. Nothing of a call is left when it has returned: no file, and no memory,
// such as what waits for the end of a context.
func testNothingLeft(t *testing.T, su suite) {
	s := su.new(t)
	s.cas("a", "", "0")
	s.cas("b", "", "0")
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	calls := map[string]func(ctx context.Context){
		"Get":               func(ctx context.Context) { _, _ = s.Get(ctx, "a") },
		"Get of no value":   func(ctx context.Context) { _, _ = s.Get(ctx, "none") },
		"a refused CAS":     func(ctx context.Context) { _, _ = s.CAS(ctx, "a", []byte("x"), []byte("y")) },
		"List":              func(ctx context.Context) { _ = s.List(ctx, "", func(string, []byte) bool { return true }) },
		"List that stops":   func(ctx context.Context) { _ = s.List(ctx, "", func(string, []byte) bool { return false }) },
		"Get after its end": func(context.Context) { _, _ = s.Get(gone, "a") },
		"Get that ends": func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			go cancel()
			_, _ = s.Get(ctx, "a")
		},
	}
	if m, ok := s.Store.(grant.MultiGetter); ok {
		calls["GetMany"] = func(ctx context.Context) { _, _ = m.GetMany(ctx, []string{"a", "b", "none"}) }
	}
	for what, call := range calls {
		left.Nothing(t, what, func() { call(s.ctx) })
		s.endIfFailed() // it has waited for long
	}
}
