package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/fleet/metrics"
)

// A history is the recent rates of IDs made by this server, for each sequencer
// and in total, at equal intervals. It is safe for concurrent use.
type history struct {
	every time.Duration

	mu    sync.Mutex // guards the fields below
	times []time.Time
	by    map[string]*series
}

// A series is the rates of a sequencer; the last one is at the history's last
// time.
type series struct {
	rates []float64
	ids   uint64 // count at the last sample
	seen  bool
}

const (
	historyLen   = 150 // points: five minutes at two seconds
	maxHistories = 500 // sequencers, as in metrics
)

func newHistory(every time.Duration) *history {
	return &history{every: every, by: make(map[string]*series)}
}

// sample samples this server's figures until the console is closed.
func (k *Console) sample() {
	tick := time.NewTicker(k.c.Every)
	defer tick.Stop()
	k.history.add(k.c.Now(), k.c.Figures())
	for {
		select {
		case <-tick.C:
			k.history.add(k.c.Now(), k.c.Figures())
		case <-k.ctx.Done():
			return
		}
	}
}

// add records the IDs made until now.
func (h *history) add(now time.Time, figures []metrics.Sequencer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	passed := 0.0
	if n := len(h.times); n > 0 {
		passed = now.Sub(h.times[n-1]).Seconds()
	}
	h.times = push(h.times, now)
	for _, s := range h.by {
		s.seen = false
	}
	for _, q := range figures {
		s := h.by[q.Name]
		if s == nil {
			if len(h.by) >= maxHistories {
				continue
			}
			s = &series{}
			if len(h.times) == 1 {
				s.ids = q.IDs // made before the first sample
			}
			h.by[q.Name] = s
		}
		rate := 0.0
		if q.IDs > s.ids && passed > 0 {
			rate = float64(q.IDs-s.ids) / passed
		}
		s.ids, s.seen = q.IDs, true
		s.rates = push(s.rates, rate)
	}
	for name, s := range h.by {
		if s.seen {
			continue
		}
		s.rates = push(s.rates, 0)
		s.ids = 0
		if !slices.ContainsFunc(s.rates, func(rate float64) bool { return rate != 0 }) {
			delete(h.by, name)
		}
	}
}

// push appends a value, and drops the oldest one if there are too many.
func push[T any](s []T, v T) []T {
	if len(s) >= historyLen {
		copy(s, s[1:])
		s = s[:len(s)-1]
	}
	return append(s, v)
}

// rates returns the total rates of some sequencers, and the time of each.
func (h *history) rates(of func(name string) bool) (times []time.Time, rates []float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	rates = make([]float64, len(h.times))
	for name, s := range h.by {
		if !of(name) {
			continue
		}
		from := len(rates) - len(s.rates) // the sequencer may be newer
		for i, r := range s.rates {
			rates[from+i] += r
		}
	}
	return slices.Clone(h.times), rates
}

// ratesOf returns the rates of a sequencer, and the time of each.
func (h *history) ratesOf(name string) ([]time.Time, []float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.by[name]
	if s == nil {
		return nil, nil
	}
	return slices.Clone(h.times[len(h.times)-len(s.rates):]), slices.Clone(s.rates)
}

// now returns the latest rate: the mean of the last few points, so that it is
// steady.
func now(rates []float64) float64 {
	const some = 3
	n := min(some, len(rates))
	if n == 0 {
		return 0
	}
	sum := 0.0
	for _, r := range rates[len(rates)-n:] {
		sum += r
	}
	return sum / float64(n)
}

// The size of a sparkline, before it is scaled.
const (
	sparkWide = historyLen
	sparkHigh = 24
)

// A spark is a sparkline of rates, with the latest on the right.
type spark struct {
	Line, Area string // as SVG paths
	Label      string
	Wide, High int
}

func newSpark(rates []float64) spark {
	s := spark{Wide: sparkWide, High: sparkHigh}
	most := 0.0
	for _, r := range rates {
		most = max(most, r)
	}
	s.Label = "no IDs in the last minutes"
	if most > 0 {
		s.Label = fmt.Sprintf("up to %s IDs per second in the last minutes", count(most))
	}
	if len(rates) < 2 {
		return s
	}
	var b strings.Builder
	begin := sparkWide - len(rates) + 1
	for i, r := range rates {
		y := float64(sparkHigh) - 1.5
		if most > 0 {
			y -= r / most * (sparkHigh - 3)
		}
		op := "L"
		if i == 0 {
			op = "M"
		}
		fmt.Fprintf(&b, "%s%d %.4g", op, begin+i-1, math.Round(y*10)/10)
	}
	s.Line = b.String()
	s.Area = fmt.Sprintf("%sL%d %dL%d %dZ", s.Line, begin+len(rates)-2, sparkHigh, begin-1, sparkHigh)
	return s
}
