package console

import (
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/fleet/metrics"
)

// A history counts the IDs that this server made of each sequencer in the last
// hour. It is safe for concurrent use.
type history struct {
	mu      sync.Mutex // guards the fields below
	samples int
	times   []time.Time // when the points begin; the last one is the latest sample
	by      map[string]*series
}

// A series is the count of a sequencer at each of the history's times.
type series struct {
	counts []uint64 // never decrease
	ids    uint64   // at the last sample; less than before if the sequencer was opened again
}

const (
	historyLen      = 360 // points: an hour at ten seconds
	samplesPerPoint = 5
	maxHistories    = 500 // sequencers, as in metrics
)

func newHistory() *history { return &history{by: make(map[string]*series)} }

// sample samples this server's figures until the console is closed.
func (k *Console) sample() {
	tick := time.NewTicker(k.c.Every)
	defer tick.Stop()
	for {
		k.history.add(k.c.Now(), k.c.Figures())
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			return
		}
	}
}

// add records the IDs made until now.
func (h *history) add(now time.Time, figures []metrics.Sequencer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.samples == 0
	// The latest sample replaces the one before, until its point is complete.
	if first || h.samples%samplesPerPoint == 1 {
		h.times = push(h.times, now)
		for _, s := range h.by {
			s.counts = push(s.counts, s.counts[len(s.counts)-1])
		}
	}
	h.samples++
	last := len(h.times) - 1
	h.times[last] = now
	seen := make(map[string]bool, len(figures))
	for _, q := range figures {
		s := h.by[q.Name]
		if s == nil {
			if len(h.by) >= maxHistories {
				continue
			}
			s = &series{counts: make([]uint64, len(h.times), historyLen+1)}
			if first {
				s.ids = q.IDs // made before the first sample
			}
			h.by[q.Name] = s
		}
		if q.IDs > s.ids {
			s.counts[last] += q.IDs - s.ids
		}
		s.ids, seen[q.Name] = q.IDs, true
	}
	for name, s := range h.by {
		if seen[name] {
			continue
		}
		s.ids = 0
		if s.counts[0] == s.counts[last] {
			delete(h.by, name)
		}
	}
}

// push appends a value, and drops the oldest one if there are too many.
func push[T any](s []T, v T) []T {
	if len(s) > historyLen {
		copy(s, s[1:])
		s = s[:len(s)-1]
	}
	return append(s, v)
}

// rates returns the total rates of some sequencers: rates[i] is the mean from
// times[i] to times[i+1]. now is the mean of the last two points, so that it is
// steady.
func (h *history) rates(of func(name string) bool) (times []time.Time, rates []float64, now float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.times) < 2 {
		return nil, nil, 0
	}
	last := len(h.times) - 1
	rates = make([]float64, last)
	for name, s := range h.by {
		if !of(name) {
			continue
		}
		for i := range rates {
			rates[i] += h.mean(s, i, i+1)
		}
		now += h.mean(s, max(0, last-2), last)
	}
	return slices.Clone(h.times), rates, now
}

// mean returns the mean rate of a series between two of the history's times.
func (h *history) mean(s *series, from, to int) float64 {
	passed := h.times[to].Sub(h.times[from]).Seconds()
	if passed <= 0 {
		return 0
	}
	return float64(s.counts[to]-s.counts[from]) / passed
}

// ratesOf returns the rates of one sequencer.
func (h *history) ratesOf(name string) (times []time.Time, rates []float64, now float64) {
	return h.rates(func(n string) bool { return n == name })
}
