// Package freshness determines cheaply whether a reading of the clock is still
// fresh, that is, whether less than some microseconds have passed since. It
// reads a counter of the processor, which costs a fifth of reading the clock,
// and trusts the counter in one direction only.
//
// # Why a wrong counter does no harm
//
// An Allowance means: as long as the reading is fresh, everything below end may
// be used without reading the clock again. The end was computed from a real
// reading, taken after the counter showed stamp. A caller that uses the
// allowance compares the word that holds the next slot with end, in the same
// atomic step that moves it. So, whatever the counter shows:
//
//   - The uniqueness of IDs does not depend on it, but on the step on the word.
//   - MaxAhead and the end of the grant hold with respect to a reading that was
//     really made: a clock that has advanced since can only allow more.
//   - An allowance ends after at most MaxIDs IDs, so even a counter that lies
//     is soon detected if IDs are drawn fast.
//
// Only the age of the reading from which an ID's time comes depends on the
// counter. The test is counter - stamp - 1 < span, unsigned:
//
//   - A counter that jumps forward (a suspended or migrated machine) gives a
//     large difference. One that went back (another socket, a reset during a
//     suspend) gives a negative difference, which is even larger as an unsigned
//     number. One that stands still gives 0 - 1, the largest. In all three
//     cases the clock is read.
//   - A counter at another rate is measured. Each reading of the clock reads
//     the counter before and after it, and compares both with an earlier
//     reading. A rate is trusted when two intervals agree on it to a quarter
//     and no processor is faster; if one disagrees, there are no allowances
//     until it is known again. The span is computed from the lowest rate that is
//     consistent with the two readings, so it is never too long for them.
//
// One case remains: a counter that goes wrong after a reading and, at the next
// call, shows a value as if little time had passed. It has stopped or slowed
// down after the reading, or has gone back by just the time without calls. Then
// the time of an ID lags, by at most that time, until the next reading, which
// is at most MaxIDs IDs away.
//
// If the clock is set back, an allowance stays valid: its IDs lead the new
// time by the size of the step, for at most the span.
//
// # When there are no allowances
//
// There are no allowances for a clock set by the caller, nor in a synctest
// bubble, where time stands still while the counter continues: there time.Now
// has no monotonic part, and a reading without one allows nothing.
//
// The counter is RDTSC on amd64, if CPUID reports it as invariant, and
// CNTVCT_EL0 on arm64. On other processors, and with the build tag purego,
// there are no allowances, and every call reads the clock.
package freshness
