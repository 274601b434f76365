// Package freshness tells cheaply whether a reading of the clock is still
// fresh: whether less than some microseconds have passed since it was taken. It
// asks a counter of the processor, which costs a fifth of a look at the clock,
// and it believes the counter in one direction only.
//
// # Why a wrong counter does no harm
//
// A Window says: until the reading is no longer fresh, whatever lies below end
// may be used without another look at the clock. The end was computed from a
// real reading, taken after the counter said stamp. Whoever uses the window
// compares the word that counts with end, in the same atomic step that moves
// it. So, whatever the counter says,
//
//   - what makes IDs unique does not depend on it: that is the step on the
//     word;
//   - MaxAhead and the end of the grant hold against a reading that was really
//     made: a clock that goes on can only allow more since;
//   - a window is left after at most Most IDs, so that even a counter that lies
//     is found out soon where IDs are drawn fast.
//
// What depends on it is how old the reading is that an ID's time comes from.
// The test is counter - stamp - 1 < span, unsigned:
//
//   - a counter that jumps forward (a paused or migrated machine) gives a large
//     difference, one that went back (another socket, a reset at a suspend) a
//     negative one, which is larger still, and one that stands still gives 0 -
//     1, the largest: all three mean a look at the clock;
//   - a counter at another rate is measured. Each look at the clock reads the
//     counter before and after it, and compares the two ways with those of an
//     earlier look. A rate is believed when two intervals agree on it to a
//     quarter and no processor is faster; where one disagrees, there are no
//     windows until it is known anew. The span is computed from the least rate
//     that the two looks leave possible, so it is never too long for them.
//
// What is left is a counter that goes wrong after a look at the clock and, at
// the next call, says what it would have said a moment later: one that stops or
// runs slowly after the look, or that goes back by just the time that nobody
// called. Then an ID's time lags, by that time at most, until the next look,
// which is no more than Most IDs away.
//
// Where the clock is set back, a window that is open stays open: its IDs lead
// the new time by what the clock was set back, for the span at most.
//
// # Where there are none
//
// There are no windows for a clock that was given by the caller, nor in a
// synctest bubble, where time stands still while the counter goes on: there
// time.Now has no monotonic part, and a reading without one opens no window.
//
// The counter is RDTSC on amd64, if CPUID says that it is invariant, and
// CNTVCT_EL0 on arm64. Elsewhere, and with the build tag purego, it is the
// runtime's monotonic clock, which is half the cost of both clocks together.
package freshness
