package firn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors without data. Errors with data are types: WaitError, ClockError,
// RangeError and ParseError.
var (
	// ErrExhausted means that no ID is free now, but one will be a moment
	// later: a call that does not wait can be repeated. Every WaitError matches
	// it, and so does the error of TryNext while IDs are being fetched, or a
	// node ID is being acquired, and nothing has failed. Package client also
	// returns it if a server is busy, or the limit of the client is reached.
	ErrExhausted = errors.New("firn: no ID is free at this moment")

	// ErrUnavailable means that a store, or every server of a Client, did not
	// answer in time or refused the request, for example because a disk is
	// full. Trying again later may help. It is returned by the sequencers of
	// the packages sequencer and client. A call that its caller cancels is only
	// unavailable if something is known to have failed.
	ErrUnavailable = errors.New("firn: the store or server is unavailable")

	// ErrClosed is returned after Close, by a Prefetcher here, by the Keepers
	// of package grant, and by the sequencers of the packages sequencer and
	// client.
	ErrClosed = errors.New("firn: already closed")

	// ErrSealed is returned after Seal: the generator makes no more IDs, and
	// its node ID may already belong to another process.
	ErrSealed = errors.New("firn: generator is sealed")

	// ErrGrantOver is returned when the clock, or the request, has reached the
	// end of the grant. No ID was made. Extend the grant or Switch to another.
	ErrGrantOver = errors.New("firn: the grant has ended; it must be extended before the next ID")

	// ErrTimeOver is returned when the layout's last tick is used up.
	ErrTimeOver = errors.New("firn: the layout has no time left: it needs more time bits or, if IDs may repeat, a " +
		"coarser unit or a later epoch")

	// ErrBatchTooLarge is returned for a batch that would take longer than the
	// context's deadline allows even if the generator were idle, or that spans
	// more time than a static grant or a sequencer's window allows, or, in a
	// call that does not wait, than MaxAhead. No ID was made. Fill has no such
	// limit.
	ErrBatchTooLarge = errors.New("firn: the batch is too large")

	// ErrBeforeEpoch is matched by a ClockError if the clock is before the
	// layout's epoch.
	ErrBeforeEpoch = errors.New("firn: the clock is before the layout's epoch")
)

// A WaitError reports that the IDs of a call may not be made now, and how long
// it takes until they may. It matches ErrExhausted.
type WaitError struct {
	// Wait is how long until then, at least 1 ns. It counts from the last
	// reading of the clock, up to 1 s before a waiting call returns.
	Wait time.Duration

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

// A ClockError reports that the clock went back by more than MaxAhead, or that
// it is before the layout's epoch (then the error matches ErrBeforeEpoch). No
// ID was made. IDs can be made again once the clock has caught up.
type ClockError struct {
	Now time.Time // the reading of the clock

	// Last is the time of the last ID (before the first one of a static grant,
	// that of its predecessor), or the epoch.
	Last time.Time

	Wait time.Duration // until the next ID can be made, if the clock runs at its usual rate

	BeforeEpoch bool // Now is before the epoch, which is Last

	back time.Duration // how far the clock went back, beyond what MaxAhead allows
}

func (e *ClockError) Error() string {
	now, last := formatTime(e.Now), formatTime(e.Last)
	if e.BeforeEpoch {
		return fmt.Sprintf("firn: the clock reads %s, which is before the layout's epoch %s: set the clock, or choose "+
			"an earlier epoch", now, last)
	}
	return fmt.Sprintf("firn: the clock went back to %s, %v before the last ID (%s): no ID for another %v unless "+
		"the clock is corrected",
		now, e.Last.Sub(e.Now), last, e.Wait)
}

// Is reports whether target is ErrBeforeEpoch and e is about a clock before the
// epoch.
func (e *ClockError) Is(target error) bool { return e.BeforeEpoch && target == ErrBeforeEpoch }

// A RangeError reports that a field of an ID cannot hold a value. Values are
// never masked to fit.
type RangeError struct {
	Field           string // "node", "sequence", …
	Value, Min, Max string // as text; Min and Max are inclusive
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("firn: %s %s is out of range %s..%s", e.Field, e.Value, e.Min, e.Max)
}

// A ParseError reports what is wrong with a text that should be an ID, a
// format, a layout or a node ID, and where.
type ParseError struct {
	What   string // what the text should be: "ID", "ID128", "layout", "node", …
	Text   string // as given; at most its first 256 bytes
	Pos    int    // byte offset of the offending character, or -1
	Reason string // what is wrong with it and what would be valid
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("firn: parse %s %s: %s", e.What, quoteShort(e.Text), e.Reason)
}

// quoteShort quotes s, truncated to a length that fits a log line.
func quoteShort(s string) string {
	const most = 64
	if len(s) > most {
		return fmt.Sprintf("%q…", s[:most])
	}
	return fmt.Sprintf("%q", s)
}

// needContext panics if ctx is nil. Every call that makes IDs under a context
// calls it first, so that the mistake shows at once and not only when a call
// has to wait.
func needContext(ctx context.Context) {
	if ctx == nil {
		panic("firn: the context is nil: pass context.Background() to wait for as long as it takes")
	}
}

// formatTime formats a time for an error message.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00") }
