package console

import (
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/fleet/metrics"
)

// A history counts the IDs that this server made of each sequencer in the last
// hour. It is safe for concurrent use.
type history struct {
	mu      sync.Mutex        // guards the fields below
	points  []point           // the last one grows with each sample
	samples int               // in the last point
	ids     map[string]uint64 // that each sequencer had made at the last sample; nil before the first
}

// A point has the IDs made of each sequencer since the point before. Those of
// the first point are not used.
type point struct {
	at   time.Time
	made map[string]uint64
}

const (
	historyLen      = 360 // points: an hour at ten seconds
	samplesPerPoint = 5
	maxHistories    = 500 // sequencers, as in metrics
)

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
	if n := len(h.points); n < 2 || h.samples == samplesPerPoint {
		h.points = append(h.points[max(0, n-historyLen):], point{made: make(map[string]uint64)})
		h.samples = 0
	}
	h.samples++
	last := &h.points[len(h.points)-1]
	last.at = now
	ids := make(map[string]uint64, len(figures))
	for _, q := range figures {
		before := h.ids[q.Name] // more than now if the sequencer was opened again
		if _, known := last.made[q.Name]; h.ids != nil && q.IDs > before && (known || len(last.made) < maxHistories) {
			last.made[q.Name] += q.IDs - before
		}
		ids[q.Name] = q.IDs
	}
	h.ids = ids
}

// rates returns the total rates of some sequencers, as means does.
func (h *history) rates(of func(name string) bool) (times []time.Time, rates []float64, now float64) {
	return h.means(func(made map[string]uint64) (sum uint64) {
		for name, n := range made {
			if of(name) {
				sum += n
			}
		}
		return sum
	})
}

// ratesOf returns the rates of one sequencer, as means does.
func (h *history) ratesOf(name string) (times []time.Time, rates []float64, now float64) {
	return h.means(func(made map[string]uint64) uint64 { return made[name] })
}

// means returns rates: rates[i] is the mean from times[i] to times[i+1]. now is
// the mean of the last two points, so that it is steady. of returns which IDs of
// a point count.
func (h *history) means(of func(made map[string]uint64) uint64) (times []time.Time, rates []float64, now float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.points) - 1
	if last < 1 {
		return nil, nil, 0
	}
	made := make([]uint64, len(h.points))
	for i, p := range h.points {
		times, made[i] = append(times, p.at), of(p.made)
		if i > 0 {
			rates = append(rates, perSecond(made[i], times[i-1], p.at))
		}
	}
	return times, rates, perSecond(made[last-1]+made[last], times[max(0, last-2)], times[last])
}

func perSecond(n uint64, from, to time.Time) float64 {
	if !from.Before(to) {
		return 0
	}
	return float64(n) / to.Sub(from).Seconds()
}
