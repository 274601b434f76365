package grant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store keeps small values under keys. It is all that coordination needs of a
// database, and the smallest interface that many databases have.
//
// CAS must be linearizable, and what it has applied must be durable: once CAS
// has returned true, its key never falls back to a value from before. Every
// value that it has from then on is the one applied or has replaced it, CAS by
// CAS, on whatever survives a crash, a loss of power or a failover.
// Uniqueness of IDs rests on this and on nothing else. A store that loses
// applied values (asynchronous failover, a file system that lies about fsync)
// makes IDs repeat. Package storetest checks what can be checked.
//
// Reads promise less. Many databases show a value before it is on disk, or on
// the replica that may be promoted, and a server that was replaced may answer
// before it notices. So what Get and List return may be lost, as if its CAS had
// never been made, and may be old while the store fails over. Only a CAS turns
// what was read into a fact: when CAS(key, old, next) returns true, the key had
// old, and never falls back to it or to what was there before. If values never
// repeat, no other CAS from any of these is ever applied. It proves nothing
// about other keys.
//
// A value may be there that no Store has written like this, as something else
// has changed it: a file with a wrong checksum, an annotation that was removed.
// Get and CAS of that key then return an error that is ErrDamaged and
// ErrNotSent, and nothing replaces it. GetMany and List show the text of that
// error in its place, so that the other keys can be read.
//
// Keys are parts joined by a slash. A part begins with a letter or a digit, and
// continues with these and with . _ - : (ASCII; upper and lower case differ). A
// key is at most 256 bytes long, a value at most 4096 and never empty. Other
// keys and values are an error that is ErrNotSent; CheckKey and CheckValue say
// what is wrong with them.
//
// A Store is safe for use by many goroutines and, unless it says otherwise, by
// many processes at once. Every method but Close takes a context and returns
// soon after it is done. If the context is done before the call, nothing is
// done at all, and the error matches both ErrNotSent and the context's.
type Store interface {
	// Get returns the value of a key, or nil if there is none. The caller owns
	// the value. Get sees every CAS that returned true before, and in a store
	// that does not fail over it is linearizable. While a store fails over, it
	// is sure to see only those of the Store it is called of. The value may not
	// be durable: see Store.
	Get(ctx context.Context, key string) ([]byte, error)

	// CAS puts next in the place of old, where old is the key's value, byte for
	// byte; an old of no bytes, nil or not, means that the key is absent. Only
	// the value matters, not how it came there: a CAS from A succeeds after A
	// was replaced by B and B by A. CAS neither keeps its arguments nor changes
	// them. Values are never removed.
	//
	//	true, nil      applied, and durable wherever the store may fail over to
	//	false, nil     not applied, and never will be: the key had another
	//	               value, which is no more durable than one that Get returns
	//	false, err     unknown: it may be applied, now or later, and what was
	//	               applied may be lost
	//
	// A store that has applied the CAS and is not certain that it is durable
	// returns an error. An error that is ErrNotSent says for certain that
	// nothing was, or will be, applied.
	CAS(ctx context.Context, key string, old, next []byte) (bool, error)

	// List calls yield for every key with the prefix, in ascending order of
	// their bytes, until yield returns false. Key by key it sees what a Get
	// called when List was called sees, or a later value, and that value may
	// not be durable either. A prefix is any text: the empty one is that of all
	// keys, and one that no key can have finds nothing. The value belongs to
	// yield only while it runs; yield may use the store. A List that could not
	// continue to the end returns an error.
	List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error

	// Close ends the use of the store. Calls under way may fail; calls after
	// it do, with an error that is ErrNotSent. Closing again does no harm.
	Close() error
}

// ErrNotSent is matched by a CAS error that says for certain that nothing was,
// or will be, applied.
var ErrNotSent = errors.New("grant: not sent to the store")

// A MultiGetter is a Store that reads many keys in one round trip. It returns a
// value for each key, in their order; nil means absent. The values are the
// caller's. They may be stale and not durable yet. But up to 8 keys are read on
// one server, at one moment or in their order: if a key has a value, those
// after it in keys have what they had when that value was written, or later
// ones.
type MultiGetter interface {
	GetMany(ctx context.Context, keys []string) ([][]byte, error)
}

// A Watcher is a Store that tells of changes. What it tells is a hint: the
// channel gets a value some time after the key changed, perhaps never, and
// perhaps without a change. It is closed when ctx is done, or before that when
// nothing more will be told. A watcher that does not read holds nobody up.
type Watcher interface {
	Watch(ctx context.Context, key string) <-chan struct{}
}

// A Lineage is a Store that knows when it went back, restored from a backup for
// instance: the identity differs from any that was seen before, or the revision
// is smaller than it was before a CAS that was applied. The revision may count
// writes that are not durable yet, so a failover that loses them may make it
// smaller than one that only Lineage has returned. An error says nothing about
// whether the store went back, so a caller that rests a write on the answer
// must not write.
type Lineage interface {
	Lineage(ctx context.Context) (identity string, revision int64, err error)
}

// A Clock is a Store that keeps time itself. Members compare their own clocks
// with it. It is a hint: the uniqueness of IDs never depends on it.
//
// Time reads the store's clock once, between the call and its return. The clock
// showed a time in [now, now + resolution) at that moment, in UTC; it may be
// wrong, and may be set back. An error says nothing about the clock.
type Clock interface {
	Time(ctx context.Context) (now time.Time, resolution time.Duration, err error)
}

// MaxKey and MaxValue are the most bytes that a key and a value have.
const (
	MaxKey   = 256
	MaxValue = 4096
)

// CheckKey returns nil if a Store takes the key, and else an error, which is
// ErrNotSent, that says what is wrong with it.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: a key has 1 to %d bytes, not %d", ErrNotSent, MaxKey, len(key))
	}
	first := true // of its part
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
			first = false
		case !first && c == '/' && i < len(key)-1:
			first = true
		case first || c != '.' && c != '_' && c != '-' && c != ':':
			return fmt.Errorf("%w: key %q: %q at offset %d: parts begin with a letter or a digit, go on with these and . _ - : as well, and are joined by one slash",
				ErrNotSent, key, key[i:i+1], i)
		}
	}
	return nil
}

// CheckValue returns nil if a Store takes the value, and else an error, which
// is ErrNotSent.
func CheckValue(value []byte) error {
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("%w: a value has 1 to %d bytes, not %d", ErrNotSent, MaxValue, len(value))
	}
	return nil
}
