package sample

import (
	"log/slog"
	"testing"
	"time"
)

func TestCut(t *testing.T) {
	for _, c := range []struct{ v, want int64 }{{-1, 0}, {3, 3}, {7, 5}} {
		if got := Cut(c.v, 5); got != c.want {
			t.Errorf("Cut(%d, 5) = %d, want %d", c.v, got, c.want)
		}
	}
}

func TestJoin(t *testing.T) {
	a, b := Span{From: 2, Until: 4}, Span{From: 3, Until: 9}
	want := Span{From: 2, Until: 9, Note: "joined"}
	if got := Join(a, b); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Join(b, a); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLength(t *testing.T) {
	if d, err := (&Span{From: 2, Until: 4}).Length(); d != 2*time.Millisecond || err != nil {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := (&Span{From: 4, Until: 2}).Length(); err == nil {
		t.Error("no error")
	}
}

func TestSum(t *testing.T) {
	if got := Sum([]int{2, 3, 4, 100, 6}); got != 6 {
		t.Errorf("got %d, want 6", got)
	}
}

func TestCounter(t *testing.T) {
	c := Counter{log: slog.New(slog.DiscardHandler)}
	c.Add()
	if !c.Close() || c.Close() {
		t.Error("closed twice, or never")
	}
	if c.Add(); c.n != 1 || c.calls != 4 {
		t.Errorf("counted %d in %d calls, want 1 in 4", c.n, c.calls)
	}
}

func TestSign(t *testing.T) {
	for n, want := range map[int]string{-2: "minus", 0: "", 2: "plus"} {
		if got := Sign(n); got != want {
			t.Errorf("Sign(%d) = %q, want %q", n, got, want)
		}
	}
}
