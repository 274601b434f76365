package firn

import "time"

// Options configure a generator. A nil pointer means the defaults.
type Options struct {
	// Now is the clock. If it is nil, the generator uses the system's wall
	// clock, and reads it again for every batch, after 8,192 IDs, and when the
	// last reading is 50 µs old, or half a tick if that is less. A clock given
	// here is called every time, by multiple goroutines concurrently, and may
	// jump in any direction: IDs stay unique.
	Now func() time.Time

	// MaxAhead is how far the time of IDs may run ahead of the clock in a
	// burst. It is taken literally, even in &Options{}: 0 means never ahead, so
	// when the sequence of a tick is used up, the next ID waits for the next
	// tick. With nil Options, it is 5 ms if the generator is made with a static
	// grant, and otherwise the layout's DefaultMaxAhead. It cannot be negative.
	MaxAhead time.Duration

	// MaxLag is how far the clock may go back, beyond MaxAhead, with Next still
	// waiting for it to catch up. If it goes back further, Next fails at once
	// with a *ClockError, as TryNext does for any step back beyond MaxAhead. 0
	// means 10 seconds.
	MaxLag time.Duration
}

// defaultMaxLag is used if Options.MaxLag is 0. NTP steps of a running machine
// are smaller, and a longer wait should be reported to the caller.
const defaultMaxLag = 10 * time.Second
