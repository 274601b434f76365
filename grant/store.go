package grant

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store keeps small values under keys. It is all that coordination needs from
// a database, and an interface that many databases can provide.
//
// CAS must be linearizable, and an applied CAS must be durable: once CAS has
// returned true, its key never falls back to an earlier value. Every later
// value of the key is the applied one or replaced it, CAS by CAS, on any
// storage that survives a crash, a loss of power or a failover. The uniqueness
// of IDs relies on this and on nothing else. A store that loses applied values
// (asynchronous failover, a file system that lies about fsync) makes IDs
// repeat. Package storetest checks what can be checked.
//
// Reads guarantee less. Many databases show a value before it is on disk, or on
// the replica that may be promoted, and a server that was replaced may answer
// before it notices. So values from Get and List may be lost, as if their CAS
// had never been made, and may be stale during a failover. Only a CAS turns
// what was read into a fact: when CAS(key, old, next) returns true, the key had
// the value old, and never falls back to it or an earlier one. If values never
// repeat, no other CAS from any of these values is ever applied. A CAS proves
// nothing about other keys.
//
// A stored value may be damaged, because something other than a Store has
// changed it: a file has a wrong checksum, or an annotation was removed. Get
// and CAS of that key then return an error that matches ErrDamaged and
// ErrNotSent, and nothing replaces the value. GetMany and List return the text
// of that error in place of the value, so that the other keys can still be
// read.
//
// Keys are parts joined by a slash. A part begins with a letter or a digit, and
// continues with these and with . _ - : (ASCII, case-sensitive). A key is at
// most 256 bytes long, a value at most 4096 and never empty. Other keys and
// values are rejected with an error that matches ErrNotSent; CheckKey and
// CheckValue describe what is wrong with them.
//
// A Store is safe for concurrent use by multiple goroutines and, unless
// documented otherwise, by multiple processes. Every method but Close takes a
// context and returns soon after it is done. If the context is done before the
// call, the call has no effect, and its error matches both ErrNotSent and the
// context's error.
//
// A Store may also be a MultiGetter, a Watcher, a Lineage, a Clock, Dangers or
// Paced.
type Store interface {
	// Get returns the value of a key, or nil if the key is absent. The caller
	// owns the value. Get sees every CAS that returned true before, and in a
	// store that does not fail over it is linearizable. During a failover, it
	// is only sure to see the CAS calls made through the same Store. The value
	// may not be durable: see Store.
	Get(ctx context.Context, key string) ([]byte, error)

	// CAS replaces the value of a key by next if it equals old, byte for byte;
	// an empty old, nil or not, means that the key is absent. Only the value
	// matters, not its history: a CAS from A succeeds after A was replaced by B
	// and B by A. CAS neither keeps nor changes its arguments. Values are never
	// removed.
	//
	//	true, nil      applied, and durable wherever the store may fail over to
	//	false, nil     not applied, and never will be: the key had another
	//	               value, which is no more durable than one that Get returns
	//	false, err     unknown: it may be applied, now or later, and what was
	//	               applied may be lost
	//
	// A store that has applied the CAS but is not certain that it is durable
	// returns an error. An error that matches ErrNotSent guarantees that
	// nothing was, or will be, applied.
	CAS(ctx context.Context, key string, old, next []byte) (bool, error)

	// List calls yield for every key with the prefix, in ascending byte order,
	// until yield returns false. For each key it sees what a Get called at the
	// same time as List would see, or a later value, which may not be durable
	// either. The prefix may be any text: the empty one matches all keys, and
	// one that no key can have matches none. The value is only valid until
	// yield returns. yield may use the store. If List cannot complete, it
	// returns an error.
	List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error

	// Close releases the store. Calls in progress may fail; later calls fail
	// with an error that matches ErrNotSent. Calling Close again has no effect.
	Close() error
}

// ErrNotSent is matched by a CAS error that guarantees that nothing was, or
// will be, applied.
var ErrNotSent = errors.New("grant: not sent to the store")

// Errors of opening a Store.
var (
	// ErrOptions means that the options are invalid.
	ErrOptions = errors.New("grant: invalid options of a store")

	// ErrUnreachable means that the store does not answer, or says that it
	// cannot yet: etcd without a leader, a database that is starting. The same
	// options may succeed later.
	ErrUnreachable = errors.New("grant: the store does not answer")

	// ErrUnfit means that the store is configured or built so that it may lose,
	// undo or change writes, or that it has lost some. Waiting does not help. A
	// Store that was opened may become unfit: its calls then fail with it.
	ErrUnfit = errors.New("grant: the store may lose or undo writes")
)

// A MultiGetter is a Store that reads many keys in one round trip. It returns a
// value for each key, in order; nil means absent. The caller owns the values.
// They may not be durable yet, and those of more than 8 keys may be stale. Up
// to 8 keys are read on one server, each as fresh as by Get. Two keys are read
// at one moment or in order: if the first has a value, the second has the value
// from when that was written, or a later one.
type MultiGetter interface {
	GetMany(ctx context.Context, keys []string) ([][]byte, error)
}

// A Watcher is a Store that reports changes. A report is a hint: the channel
// gets a value some time after the key changed, perhaps never, and perhaps
// without a change. It is closed when ctx is done, or earlier if no more
// changes will be reported. A watcher that does not receive blocks no other
// call.
type Watcher interface {
	Watch(ctx context.Context, key string) <-chan struct{}
}

// A Paced Store is written to more or less often than others, unless users
// choose otherwise: because it is slow, or each write has a price, or an outage
// is long.
type Paced interface {
	Pace() Pace
}

// A Pace is how often a store is written to.
type Pace struct {
	Window        time.Duration // the default of Config.Window; 0 means 60 s
	PresenceEvery time.Duration // between two writes of a server that it is there; 0 means 10 s
}

// A Lineage is a Store that detects when it went back, for example because it
// was restored from a backup: the identity differs from any that was seen
// before, or the revision is smaller than it was before an applied CAS. The
// revision may include writes that are not durable yet, so after a failover
// that loses them it may be smaller than one that only Lineage has returned. An
// error does not indicate whether the store went back, so a caller whose write
// depends on the answer must not write.
type Lineage interface {
	Lineage(ctx context.Context) (identity string, revision int64, err error)
}

// A Clock is a Store that has a clock of its own. Members compare their clocks
// with it. It is a hint: the uniqueness of IDs never depends on it.
//
// Time reads the store's clock once, between the call and its return. At that
// moment the clock showed a time in [now, now + resolution), in UTC. The clock
// may be wrong, and may be set back. An error means nothing about the clock.
type Clock interface {
	Time(ctx context.Context) (now time.Time, resolution time.Duration, err error)
}

// Dangers is a Store that looks for conditions under which an applied CAS may
// be lost, or Firn may stop, such as a setting of a database. Its method
// changes nothing, and returns a sentence for each danger, whose text stays the
// same while the danger lasts. firn serve calls it now and then and logs them,
// and firn doctor prints them.
type Dangers interface {
	Dangers(ctx context.Context) (dangers []string, err error)
}

// NotSent returns an error that matches err and ErrNotSent, or nil if err is
// nil. It is for implementations of Store.
func NotSent(err error) error {
	if err == nil || errors.Is(err, ErrNotSent) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// maxValue is the maximum length of a value, in bytes.
const maxValue = 4096

// CheckValue returns nil if value is valid for a Store, and otherwise an error
// that matches ErrNotSent.
func CheckValue(value []byte) error {
	if len(value) == 0 || len(value) > maxValue {
		return fmt.Errorf("%w: a value must have 1 to %d bytes, not %d", ErrNotSent, maxValue, len(value))
	}
	return nil
}

// As returns the Store as one of the optional interfaces (MultiGetter, Watcher,
// Lineage, Clock, Dangers, Paced), or as one with an optional method. Use it
// instead of a type assertion, which a Store from Observe does not answer for
// the Store in it.
//
// A Store that passes requests on to another one has a method Unwrap() Store,
// which returns that one, or nil as long as it is not known. As then returns
// the outer Store only as what the inner one is too, and what the outer one
// lacks from the inner one. So ask again for each use.
func As[T any](s Store) (t T, ok bool) {
	t, ok = s.(T)
	outer, wraps := s.(interface{ Unwrap() Store })
	if !wraps {
		return t, ok
	}
	if _, watches := any(&t).(*Watcher); watches && ok {
		if _, is := s.(*observed); is {
			return t, true // of what is written through it
		}
	}
	inner := outer.Unwrap()
	if inner == nil {
		return t, ok
	}
	u, has := As[T](inner)
	if !ok {
		return u, has
	}
	return t, has
}
