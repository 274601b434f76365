package bench

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// A loop does something n times, and returns how long that took.
type loop func(n int) time.Duration

// timed makes a loop of a function that does something n times.
func timed(f func(n int)) loop {
	return func(n int) time.Duration {
		begin := time.Now()
		f(n)
		return time.Since(begin)
	}
}

// each makes a loop of a function that does something once. Its call through a
// variable takes about 2 ns.
func each(f func()) loop {
	return timed(func(n int) {
		for range n {
			f()
		}
	})
}

// A slice is so short that other programs disturb few of them.
const slice = 200 * time.Microsecond

// pair measures a subject and its reference in turns. It reports the median of
// the subject's nanoseconds, and as unit the median of the ratios of adjacent
// slices: of the subject to the reference.
func pair(b *testing.B, subject, reference loop, unit string, slice time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, m := calibrate(subject, slice), calibrate(reference, slice)
	var own, ratios []float64
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += n {
		x := float64(subject(n)) / float64(n)
		own = append(own, x)
		ratios = append(ratios, x/(float64(reference(m))/float64(m)))
	}
	b.ReportMetric(median(own), "ns/op")
	b.ReportMetric(median(ratios), unit)
}

// calibrate returns how often a loop does something in a slice, and warms it
// up. The fastest of three attempts counts.
func calibrate(l loop, slice time.Duration) int {
	for n := 1; ; n *= 2 {
		took := min(l(n), l(n), l(n))
		if took >= slice/4 || n >= 1<<28 {
			return max(1, int(float64(n)*float64(slice)/float64(max(took, 1))))
		}
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
