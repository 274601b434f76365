package service

import (
	"cmp"
	"time"
)

// MaxCount is the largest number of IDs in a request.
const MaxCount = 100_000

// DefaultMaxSequencers is the value that 0 stands for in MaxSequencers of
// StaticBackendConfig and StoreBackendConfig.
const DefaultMaxSequencers = 10_000

// DefaultRequestTimeout is the default of how long a request may wait: after
// this time, most clients and proxies give up.
const DefaultRequestTimeout = 10 * time.Second

// lookupTimeout is how long a Backend's Ready may take, and a look at the store
// after a request: less than callers of /readyz usually wait, which is a second
// or more.
const lookupTimeout = 800 * time.Millisecond

// Limits bound the size of requests and the time of connections. The zero value
// of a field has the meaning given at the field. A request for IDs has no body,
// so its client sends only a header.
type Limits struct {
	Count  int           // IDs per request, up to MaxCount; 0 means MaxCount
	Body   int           // bytes of a body; 0 means DefaultBody
	Header int           // bytes of a header; net/http adds 4 KiB and answers 431 beyond it. 0 means DefaultHeader
	Read   time.Duration // for a header, from its first byte, and again for a body; 0 means DefaultRead
	Write  time.Duration // for the answer, after the limit of the request; 0 means DefaultWrite
	Idle   time.Duration // between requests; 0 means DefaultIdle
}

// Defaults of Limits.
const (
	DefaultBody   = 64 << 10
	DefaultHeader = 16 << 10
	DefaultRead   = 10 * time.Second
	DefaultWrite  = 30 * time.Second
	DefaultIdle   = 2 * time.Minute // longer than most clients keep idle connections
)

// WithDefaults returns the Limits with defaults for zero fields.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Count: cmp.Or(l.Count, MaxCount), Body: cmp.Or(l.Body, DefaultBody), Header: cmp.Or(l.Header, DefaultHeader),
		Read: cmp.Or(l.Read, DefaultRead), Write: cmp.Or(l.Write, DefaultWrite), Idle: cmp.Or(l.Idle, DefaultIdle),
	}
}
