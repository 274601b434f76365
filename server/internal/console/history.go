package console

import (
	"sync"
	"time"

	"github.com/firnid/firn/server/internal/operate/metrics"
)

// A history counts the IDs that this server made of each sequencer in the last
// hour. It is safe for concurrent use.
type history struct {
	mu      sync.Mutex        // guards the fields below
	samples []sample          // the oldest first
	ids     map[string]uint64 // that each sequencer had made at the last sample
}

// A sample has the IDs made of each sequencer since the sample before. Those of
// the first sample are not used.
type sample struct {
	at   time.Time
	made map[string]uint64
}

const (
	historyLen   = 360 // samples: an hour at ten seconds
	sampleEvery  = 5   // times Config.Every
	maxHistories = 500 // sequencers, as in metrics
)

// sample samples this server's figures until the console is closed.
func (k *Console) sample() {
	tick := time.NewTicker(sampleEvery * k.config.Every)
	defer tick.Stop()
	for {
		k.history.add(k.config.Now(), k.config.Figures())
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
	made, ids := make(map[string]uint64), make(map[string]uint64, len(figures))
	for _, q := range figures {
		// A sequencer that was opened again has made fewer than before.
		if before := h.ids[q.Name]; q.IDs > before && len(made) < maxHistories {
			made[q.Name] = q.IDs - before
		}
		ids[q.Name] = q.IDs
	}
	h.samples, h.ids = append(h.samples[max(0, len(h.samples)-historyLen):], sample{now, made}), ids
}

// rates returns the total rates of some sequencers: rates[i] is the mean from
// times[i] to times[i+1], and latest the last one.
func (h *history) rates(of func(name string) bool) (times []time.Time, rates []float64, latest float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range h.samples {
		times = append(times, s.at)
		if i == 0 {
			continue
		}
		sum := uint64(0)
		for name, n := range s.made {
			if of(name) {
				sum += n
			}
		}
		latest = perSecond(sum, times[i-1], s.at)
		rates = append(rates, latest)
	}
	return times, rates, latest
}

// ratesOf returns the rates of one sequencer.
func (h *history) ratesOf(name string) (times []time.Time, rates []float64, latest float64) {
	return h.rates(func(other string) bool { return other == name })
}

func perSecond(n uint64, from, to time.Time) float64 {
	if !from.Before(to) {
		return 0
	}
	return float64(n) / to.Sub(from).Seconds()
}
