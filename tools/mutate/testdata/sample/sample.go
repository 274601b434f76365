// Package sample has one place at least for each kind of mutant.
package sample

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

var errNegative = errors.New("negative")

// A Span is a time from From to Until.
type Span struct {
	From, Until int64
	Note        string
}

// Cut keeps v between 0 and most.
func Cut(v, most int64) int64 { return max(0, min(v, most)) }

// Join is the least span with both in it.
func Join(a, b Span) Span {
	if a.Until < a.From || b.Until < b.From {
		return Span{}
	}
	return Span{From: min(a.From, b.From), Until: max(a.Until, b.Until), Note: "joined"}
}

// Length is how long a span is.
func (s *Span) Length() (time.Duration, error) {
	d := s.Until - s.From
	if d < 0 {
		return 0, errNegative
	}
	return time.Duration(d) * time.Millisecond, nil
}

// String is text for people, in which nothing is changed.
func (s *Span) String() string {
	if s.Note == "" || s.Until < s.From {
		return "empty"
	}
	return s.Note
}

// Wait waits for a time. What it frees at its end has no mutants either.
func Wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Sum adds the even numbers, up to the first that is 100.
func Sum(numbers []int) (sum int) {
	for i := 0; i < len(numbers); i++ {
		switch n := numbers[i]; {
		case n == 100:
			return sum
		case n%2 != 0:
			continue
		default:
			sum += n
		}
	}
	return sum
}

// A Counter counts, and says so in a log.
type Counter struct {
	n, calls int
	closed   bool
	log      *slog.Logger
}

// Add counts one more.
func (c *Counter) Add() {
	defer c.called()
	if c.closed {
		return
	}
	c.n++
	c.log.Info("counted", "n", c.n+1)
}

// Close ends the counting.
func (c *Counter) Close() (open bool) {
	c.called()
	open, c.closed = !c.closed, true
	return open
}

func (c *Counter) called() { c.calls += 1 }

// Sign says of which kind a number is. The last case is one that no test can
// tell from the code without it.
func Sign(n int) string {
	switch {
	case n < 0:
		return "minus"
	case n == 0:
		return ""
	case n > 0:
		return "plus"
	}
	return "plus"
}
