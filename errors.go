package firn

import (
	"errors"
	"fmt"
	"time"
)

// Errors that say all there is to say. Errors that carry data to act on are
// types: WaitError, ClockError, RangeError, ParseError.
var (
	// ErrExhausted is matched by every WaitError: no ID may be made just now,
	// one may be made a moment later.
	ErrExhausted = errors.New("firn: no ID is free at this moment")

	// ErrSealed means that Seal was called: the generator makes no more IDs,
	// and its node ID may have another owner by now.
	ErrSealed = errors.New("firn: generator is sealed")

	// ErrGrantOver means that the clock, or the request, has reached the end of
	// the grant. Extend or Switch the generator; no ID was made.
	ErrGrantOver = errors.New("firn: the grant ends here; it must be extended before the next ID")

	// ErrTimeOver means that the layout's last tick is used up.
	ErrTimeOver = errors.New("firn: the layout has no time left: it needs more time bits, a coarser unit or a later epoch")

	// ErrBatchTooLarge means that a batch takes longer than the context's
	// deadline leaves, even from a generator that is idle, or spans more time
	// than a static grant or a sequencer's window allows. Nothing was taken. Fill
	// has no such limit.
	ErrBatchTooLarge = errors.New("firn: the batch is too large")

	// ErrBeforeEpoch is matched by a ClockError of a clock that stands before
	// the layout's epoch.
	ErrBeforeEpoch = errors.New("firn: the clock is before the layout's epoch")
)

// A WaitError says that the IDs of a call may not be made at this moment, and
// how long it takes until they may. It matches ErrExhausted.
type WaitError struct {
	Wait time.Duration // from the moment of the call; at least 1 ns

	n      uint64 // IDs of the call; 0 is 1
	before uint64 // IDs that calls wait for which came before
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("firn: no ID is free for another %v", e.Wait)
	if e.n > 1 {
		text = fmt.Sprintf("firn: %d IDs are not free for another %v", e.n, e.Wait)
	}
	if e.before > 0 {
		text += fmt.Sprintf(": earlier calls wait for %d", e.before)
	}
	return text
}

// Is reports whether target is ErrExhausted.
func (e *WaitError) Is(target error) bool { return target == ErrExhausted }

// A ClockError says that the clock went back, by more than MaxAhead allows for,
// or that it stands before the layout's epoch (then it matches ErrBeforeEpoch).
// No ID was made; IDs can be made again when the clock has caught up.
type ClockError struct {
	Now  time.Time     // what the clock said
	Last time.Time     // the time of the last ID, or the epoch
	Wait time.Duration // until the next ID can be made, if the clock runs on as usual

	beforeEpoch bool
	back        time.Duration // how far the clock went back, beyond what MaxAhead allows
}

func (e *ClockError) Error() string {
	const layout = "2006-01-02T15:04:05.000Z07:00"
	now, last := e.Now.UTC().Format(layout), e.Last.UTC().Format(layout)
	if e.beforeEpoch {
		return fmt.Sprintf("firn: the clock says %s, which is before the layout's epoch %s: set the clock, or choose an earlier epoch", now, last)
	}
	return fmt.Sprintf("firn: the clock went back to %s, %v before the last ID (%s): no ID for another %v unless it is set right",
		now, e.Last.Sub(e.Now), last, e.Wait)
}

// Is reports whether target is ErrBeforeEpoch and the clock is before it.
func (e *ClockError) Is(target error) bool { return e.beforeEpoch && target == ErrBeforeEpoch }

// A RangeError says which field of an ID cannot hold a value. Nothing is ever
// masked to fit.
type RangeError struct {
	Field string // "node", "sequence", …
	Value string // as given
	Min   string // the least value that fits
	Max   string // the greatest value that fits
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("firn: %s %s is out of range %s..%s", e.Field, e.Value, e.Min, e.Max)
}

// A ParseError says what is wrong with a text that should be an ID, a format
// or a layout, and where.
type ParseError struct {
	What   string // what the text should be: "ID", "ID128", "layout", …
	Text   string // as given, cut when it is very long
	Pos    int    // byte offset of the character at fault, or -1
	Reason string // what is wrong with it, and what would be right
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("firn: parse %s %s: %s", e.What, quoteShort(e.Text), e.Reason)
}

// quoteShort quotes s, cut to a length that a log line can hold.
func quoteShort(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}
