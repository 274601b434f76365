package service

import (
	"cmp"
	"time"
)

// MaxCount is how many IDs a request can have at most.
const MaxCount = 100_000

// DefaultLimit is how long a request may wait where nothing else is said: the
// time after which most clients and proxies have lost patience.
const DefaultLimit = 10 * time.Second

// ReadyLimit is how long a Backend's Ready may take: less than what asks
// /readyz waits, which is a second or more in most.
const ReadyLimit = 800 * time.Millisecond

// Limits bound what a request brings, and how long a connection may take. The
// zero value of a field means what the field says. A request for IDs has no
// body, so all that its client sends is its header.
type Limits struct {
	Count  int           // IDs that a request can have, at most MaxCount, which 0 means
	Body   int           // bytes of a body; 0 means DefaultBody
	Header int           // bytes of a header, to which net/http adds 4 KiB; beyond it answers 431. 0 means DefaultHeader
	Read   time.Duration // from the first byte of a request to the end of its header, and the same for a body; 0 means DefaultRead
	Write  time.Duration // for the answer, after the limit of the request; 0 means DefaultWrite
	Idle   time.Duration // between requests; 0 means DefaultIdle
}

// What Limits mean where they say nothing.
const (
	DefaultBody   = 64 << 10
	DefaultHeader = 16 << 10
	DefaultRead   = 10 * time.Second
	DefaultWrite  = 30 * time.Second
	DefaultIdle   = 2 * time.Minute // longer than most clients keep theirs
)

// WithDefaults returns the Limits with what they do not say filled in.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Count: cmp.Or(l.Count, MaxCount), Body: cmp.Or(l.Body, DefaultBody), Header: cmp.Or(l.Header, DefaultHeader),
		Read: cmp.Or(l.Read, DefaultRead), Write: cmp.Or(l.Write, DefaultWrite), Idle: cmp.Or(l.Idle, DefaultIdle),
	}
}
