package s3store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store       = (*store)(nil)
	_ grant.MultiGetter = (*store)(nil)
	_ grant.Lineage     = (*store)(nil)
	_ grant.Clock       = (*store)(nil)
	_ grant.Dangers     = (*store)(nil)
	_ grant.Paced       = (*store)(nil)
)

const (
	// atOnce is how many requests are made concurrently.
	atOnce = 16

	// defaultWindow makes renewals, each of which costs a request that is
	// paid, rare, and outlasts short outages of a service.
	defaultWindow = 10 * time.Minute

	identityName = "identity"
)

// A store is the grant.Store that Open returns.
type store struct {
	client
	endpoint  string // for the result of the probe
	transport *http.Transport

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	probes sync.WaitGroup // the goroutine that repeats the probe

	own    atomic.Pointer[[2]string] // the key and value of the last write that was applied
	opaque atomic.Bool               // ETags are not MD5 sums
	fault  atomic.Pointer[error]     // that a probe has found; kept until the process ends
	failed atomic.Pointer[error]     // of the last daily probe, if it was refused
}

// Pace has a window of 10 minutes, and lets servers write rarely that they are
// there: every 10 seconds would be 260,000 writes a month for each.
func (s *store) Pace() grant.Pace {
	return grant.Pace{Window: defaultWindow, PresenceEvery: defaultWindow / 3}
}

// enter begins a call for valid keys. The context that it returns is also done
// when Close begins. The caller must call leave.
func (s *store) enter(ctx context.Context, keys ...string) (_ context.Context, leave func(), err error) {
	if err := cmp.Or(grant.CheckKey(keys...), grant.NotSent(ctx.Err())); err != nil {
		return nil, nil, err
	}
	if s.ctx.Err() != nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// failed returns the error of a call that ended with err. ctx is the caller's
// context.
func failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("s3store: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("s3store: %s: %w", what, err)
}

// object reads the object of a key.
func (s *store) object(ctx context.Context, key string) (*object, error) {
	name := keysDir + objectOf(key)
	o, err := s.read(ctx, name, !s.opaque.Load())
	if err == nil {
		err = o.check(s.prefix + name)
	}
	return o, err
}

// Get returns the value of a key, or nil.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	o, err := s.object(call, key)
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("get key %q", key), err)
	}
	return o.value, nil
}

// CAS replaces old by next; see grant.Store. The write is sent once.
//
// If the server answers that the condition is false, the bytes that are stored
// decide: something on the way may have sent the write twice, and then the
// answer belongs to the second one. Another value means that the write was not
// applied. If it is next, or still old, the result is unknown.
func (s *store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return false, err
	}
	defer leave()
	applied, err := s.replace(call, key, old, next)
	if err != nil {
		return false, failed(ctx, fmt.Sprintf("replace key %q", key), err)
	}
	return applied, nil
}

func (s *store) replace(ctx context.Context, key string, old, next []byte) (bool, error) {
	if fault := s.fault.Load(); fault != nil {
		return false, grant.NotSent(*fault)
	}
	opaque, on := s.opaque.Load(), absent
	switch {
	case len(old) > 0 && opaque:
		o, err := s.object(ctx, key)
		if err != nil {
			return false, grant.NotSent(err)
		}
		if !bytes.Equal(o.value, old) {
			return false, nil
		}
		on = condition{match: o.tag}
	case len(old) > 0:
		on = condition{match: tagOf(old)}
	}
	tag, sent, err := s.put(ctx, keysDir+objectOf(key), next, on, nil)
	switch {
	case err == nil && !opaque && tag != tagOf(next):
		return false, fmt.Errorf("the answer has the ETag %s: %w", tag, errPair)
	case err == nil:
		s.own.Store(&[2]string{key, string(next)})
		return true, nil
	case !sent || isRefusal(err):
		return false, grant.NotSent(err)
	case !isConditionFalse(err):
		return false, err
	}
	now, e := s.object(ctx, key)
	switch {
	case errors.Is(e, grant.ErrDamaged):
		return false, e
	case e != nil:
		return false, fmt.Errorf("%w; reading what is stored: %w", err, e)
	case len(now.value) == 0 && len(old) == 0, bytes.Equal(now.value, old), bytes.Equal(now.value, next):
		return false, fmt.Errorf("%w, which what is stored does not confirm", err)
	}
	return false, nil // values are never removed, so old was not there either if it is absent
}

// GetMany returns the values of all keys, read at once. Of two keys, the second
// is read after the first, unless this store itself wrote the first value
// before: all that was written earlier is visible then.
func (s *store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	call, leave, err := s.enter(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer leave()
	own := s.own.Load()
	values, err := s.atOnce(call, keys)
	if err == nil && len(keys) == 2 && values[0] != nil && (own == nil || *own != [2]string{keys[0], string(values[0])}) {
		var later [][]byte
		if later, err = s.atOnce(call, keys[1:]); err == nil {
			values[1] = later[0]
		}
	}
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("get %d keys", len(keys)), err)
	}
	return values, nil
}

// atOnce reads keys, several at once. In place of a damaged value it returns
// the text of the error.
func (s *store) atOnce(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	err := each(ctx, len(keys), func(ctx context.Context, i int) error {
		o, err := s.object(ctx, keys[i])
		switch {
		case errors.Is(err, grant.ErrDamaged):
			values[i] = []byte(err.Error())
		case err != nil:
			return err
		default:
			values[i] = o.value
		}
		return nil
	})
	return values, err
}

// each calls do with 0 to n-1, up to 16 at once, until it returns an error. It
// returns the first one.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var working sync.WaitGroup
	for range min(atOnce, n) {
		working.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	working.Wait()
	return context.Cause(ctx)
}

// List calls yield for every key with the prefix. It collects all keys, sorts
// them, because not every server does, and then reads 16 at a time: a list has
// no values, and its ETags may be older than they are.
func (s *store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !isPrefix(prefix) {
		return nil
	}
	names, err := s.list(call, keysDir+objectOf(prefix), 0)
	if err != nil {
		return failed(ctx, fmt.Sprintf("list keys with %q", prefix), err)
	}
	var keys []string
	for _, name := range names {
		if key, ok := keyOf(strings.TrimPrefix(name, keysDir)); ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for some := range slices.Chunk(slices.Compact(keys), atOnce) {
		values, err := s.atOnce(call, some)
		for i, key := range some {
			if err == nil && values[i] == nil {
				err = fmt.Errorf("object %s%s%s is listed, and absent", s.prefix, keysDir, objectOf(key))
			}
			if err = cmp.Or(err, call.Err()); err != nil {
				return failed(ctx, fmt.Sprintf("list keys with %q", prefix), err)
			}
			if !yield(key, values[i]) {
				return nil
			}
		}
	}
	return nil
}

// Lineage returns the content of the object identity, a random text, with the
// bucket and the prefix. It creates the object if it does not exist, so a
// bucket that was emptied has another identity. The revision is always 0: a
// bucket has none, so its restore in place is not noticed.
func (s *store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	const what = "read object " + identityName
	for range 2 { // before and after creating it
		o, err := s.read(call, identityName, !s.opaque.Load())
		if err != nil {
			return "", 0, failed(ctx, what, err)
		}
		if nonce, ok := strings.CutPrefix(string(o.value), identityMark); ok && nonce != "" && len(o.value) <= maxValue {
			return fmt.Sprintf("%s %s/%s", nonce, s.bucket, s.prefix), 0, nil
		}
		if o.value != nil {
			return "", 0, failed(ctx, what, fmt.Errorf("%s%s was written by another program: %w", s.prefix, identityName,
				grant.ErrDamaged))
		}
		if fault := s.fault.Load(); fault != nil {
			return "", 0, failed(ctx, "create object "+identityName, grant.NotSent(*fault))
		}
		_, _, err = s.put(call, identityName, []byte(identityMark+rand.Text()), absent, nil)
		if err != nil && !isConditionFalse(err) {
			return "", 0, failed(ctx, "create object "+identityName, err)
		}
	}
	return "", 0, failed(ctx, what, errors.New("it was created, and is absent"))
}

// identityMark begins the content of the object identity.
const identityMark = "firn "

// Time returns the Date of an answer of the server.
func (s *store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer leave()
	o, err := s.fetch(call, identityName)
	if err == nil && o.date.IsZero() {
		err = errors.New("the answer has no Date")
	}
	if err != nil {
		return time.Time{}, 0, failed(ctx, "read the time", err)
	}
	return o.date.UTC(), time.Second, nil
}

// Dangers returns the fault that a probe has found, and why the last daily
// probe was refused. It makes no request: requests cost money, and the probe is
// repeated every day.
func (s *store) Dangers(ctx context.Context) (dangers []string, err error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if fault := s.fault.Load(); fault != nil {
		dangers = append(dangers, (*fault).Error())
	}
	if failed := s.failed.Load(); failed != nil {
		dangers = append(dangers, fmt.Sprintf("the daily probe was refused, so a fault would not be noticed: %v", *failed))
	}
	return dangers, nil
}

// Close closes the store. Calls in progress end with an error.
func (s *store) Close() error {
	s.cancel()
	s.probes.Wait()
	s.transport.CloseIdleConnections()
	return nil
}
