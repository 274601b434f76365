package dirstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store = (*store)(nil)
	_ grant.Clock = (*store)(nil)
	_ grant.Paced = (*store)(nil)
)

// A store is the grant.Store that Open returns.
type store struct {
	disk disk
	path string // for errors

	// failed is why the store refuses calls, once it does.
	failed atomic.Pointer[error]

	abandoned atomic.Int32 // calls whose callers have left, and that have not ended

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc

	mu    sync.Mutex     // held while adding to calls, and while Close begins
	calls sync.WaitGroup // calls that have not ended, even if their callers have left
}

// fail makes the store refuse all calls, and returns the reason.
func (s *store) fail(err error) error {
	err = fmt.Errorf("%w: %w", ErrFailed, err)
	s.failed.CompareAndSwap(nil, &err)
	return *s.failed.Load()
}

// Get returns the value of a key, or nil.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := grant.CheckKey(key); err != nil {
		return nil, err
	}
	return do(ctx, s, func() ([]byte, error) { return s.getNow(ctx, key) })
}

// getNow is Get inside a call.
func (s *store) getNow(ctx context.Context, key string) ([]byte, error) {
	name := fileName(key)
	if !readsTakeLock {
		value, settled, err := s.read(name, key)
		if settled || err != nil {
			return value, err
		}
	}
	unlock, err := s.lock(ctx, name)
	if err != nil {
		return nil, grant.NotSent(err)
	}
	defer unlock()
	return s.settled(ctx, name, key)
}

// read returns the value in a record's file, or nil if it does not exist, and
// whether the value is known to be durable.
func (s *store) read(name, key string) (value []byte, settled bool, err error) {
	data, settled, err := s.disk.read(recordPrefix + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, grant.NotSent(err)
	}
	found, value, err := decodeRecord(data)
	if err == nil && found != key {
		err = fmt.Errorf("it belongs to key %q: %w", found, grant.ErrDamaged)
	}
	if err != nil {
		return nil, false, grant.NotSent(s.recordError(name, err))
	}
	return value, settled, nil
}

// recordError returns the error for the content of a record's file.
func (s *store) recordError(name string, err error) error {
	return fmt.Errorf("dirstore: file %s in %s: %w", recordPrefix+name, s.path, err)
}

// settled returns the value of a record and ensures that it is durable. The
// caller holds the record's lock.
func (s *store) settled(ctx context.Context, name, key string) ([]byte, error) {
	value, settled, err := s.read(name, key)
	if settled || err != nil {
		return value, err
	}
	// No process is writing it, so its writer is gone, perhaps before the
	// rename was durable. The content of the file was durable before the
	// rename; writing it once more makes the rename durable too.
	if err := s.write(ctx, name, key, value); err != nil {
		return nil, err
	}
	return value, nil
}

// CAS replaces old by next; see grant.Store.
//
// An error that does not match grant.ErrNotSent matches ErrFailed, unless the
// disk has not answered. A full disk, a file without write permission, and a
// context that is done before the very last step leave everything unchanged,
// and match grant.ErrNotSent.
func (s *store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := cmp.Or(grant.CheckKey(key), grant.CheckValue(next)); err != nil {
		return false, err
	}
	// The caller may change its arguments once it has left.
	old, next = bytes.Clone(old), bytes.Clone(next)
	return do(ctx, s, func() (bool, error) { return s.casNow(ctx, key, old, next) })
}

// casNow is CAS inside a call.
func (s *store) casNow(ctx context.Context, key string, old, next []byte) (bool, error) {
	name := fileName(key)
	unlock, err := s.lock(ctx, name)
	if err != nil {
		return false, grant.NotSent(err)
	}
	defer unlock()
	now, err := s.settled(ctx, name, key)
	if err != nil {
		return false, grant.NotSent(err) // whatever the record holds, it is not next
	}
	if !bytes.Equal(now, old) {
		return false, nil
	}
	if err := s.write(ctx, name, key, next); err != nil {
		return false, err
	}
	return true, nil
}

// write makes value the durable value of a key. The caller holds the record's
// lock. After an error that does not match grant.ErrNotSent, it is unknown
// whether the value was written, and the store has failed.
//
// Everything depends on the order: content, fsync, rename, fsync, mark.
// TestMistakes omits each step, and TestCrashStates notices.
func (s *store) write(ctx context.Context, name, key string, value []byte) error {
	temp, record := tempPrefix+name, recordPrefix+name
	if err := s.writeFile(temp, encodeRecord(key, value)); err != nil {
		// It may exist in part, and it takes space. If it cannot be removed
		// now, the next write of this key or the next Open will do it.
		_ = s.disk.remove(temp)
		return grant.NotSent(err)
	}
	// Open it now, so that no write error is reported to another process
	// instead.
	dir, err := s.disk.directory()
	if err != nil {
		_ = s.disk.remove(temp)
		return grant.NotSent(err)
	}
	defer func() { _ = dir.Close() }()
	if err := s.rename(ctx, temp, record); err != nil {
		return err
	}
	// From here on others see it, and only the mark makes them wait.
	if err := dir.Sync(); err != nil {
		return s.fail(fmt.Errorf("fsync of %s: %w", s.path, err))
	}
	// Without the mark, the next reader just writes it once more.
	_ = s.disk.settle(record)
	return nil
}

// writeFile creates a file with durable content. The caller holds the lock for
// the name, so an existing file was left by a process that died.
func (s *store) writeFile(name string, data []byte) error {
	f, err := s.disk.create(name)
	if errors.Is(err, fs.ErrExist) {
		if err := s.disk.remove(name); err != nil {
			return err
		}
		f, err = s.disk.create(name)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return s.fail(fmt.Errorf("fsync of %s in %s: %w", name, s.path, err))
	}
	return f.Close()
}

// rename renames a file, unless ctx is already done. If the system refuses,
// nothing has changed; if the result is unknown, the store has failed.
func (s *store) rename(ctx context.Context, from, to string) error {
	var w waiter
	for {
		err := ctx.Err()
		if err == nil {
			if err = s.disk.rename(from, to); err == nil {
				return nil
			}
			if isBusy(err) && w.waits < maxBusy && w.wait(ctx, s.ctx.Done()) == nil {
				continue
			}
			if !isRefusal(err) {
				return s.fail(fmt.Errorf("rename of %s in %s: %w", from, s.path, err))
			}
		}
		_ = s.disk.remove(from)
		return grant.NotSent(err)
	}
}

// lock takes the lock of a record as soon as it is free, and returns the
// function that releases it.
func (s *store) lock(ctx context.Context, name string) (unlock func(), err error) {
	var w waiter
	l, err := s.disk.lock(lockPrefix + name)
	for errors.Is(err, fs.ErrPermission) && w.waits < maxUnshared && w.wait(ctx, s.ctx.Done()) == nil {
		l, err = s.disk.lock(lockPrefix + name)
	}
	if err != nil {
		return nil, err
	}
	for {
		ok, err := l.try()
		if err == nil && !ok {
			if err = w.wait(ctx, s.ctx.Done()); err == nil {
				continue
			}
			if !errors.Is(err, errClosed) {
				err = fmt.Errorf("dirstore: another process or goroutine holds %s in %s: %w", lockPrefix+name, s.path, err)
			}
		}
		if f := s.failed.Load(); f != nil && err == nil {
			err = *f // it failed during the wait
		}
		if err != nil {
			l.release()
			return nil, err
		}
		return l.release, nil
	}
}

// A waiter waits a little longer each time, by a random amount, so that
// processes waiting for one lock do not all try at once.
type waiter struct {
	pause time.Duration
	waits int
}

// The first pause is a fraction of the time of a CAS. The last one is how long
// a released lock may stay unused.
const (
	firstPause = 50 * time.Microsecond
	lastPause  = 5 * time.Millisecond
)

// maxBusy is how often rename retries while another process, such as a virus
// scanner, has the file open: for a few seconds. That happens only on Windows.
const maxBusy = 1000

// maxUnshared is how often lock retries if it may not open the lock's file: for
// about a second. Another user of the group may have created the file just now:
// a file first has the mode that the umask leaves, and is shared afterwards.
const maxUnshared = 200

// wait returns nil after a while, or an error if waiting is pointless.
func (w *waiter) wait(ctx context.Context, closing <-chan struct{}) error {
	w.waits++
	w.pause = min(max(firstPause, w.pause*3/2), lastPause)
	select {
	case <-time.After(w.pause/2 + rand.N(w.pause)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return errClosed
	}
}

// shown returns the value of one of many keys or, for a damaged record, the
// text of the error.
func shown(value []byte, err error) ([]byte, error) {
	if errors.Is(err, grant.ErrDamaged) {
		return []byte(err.Error()), nil
	}
	return value, err
}

// List calls yield for every key with the prefix. It looks at the names of all
// files of the store and reads those whose key has the prefix.
func (s *store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	keys, err := do(ctx, s, func() ([]string, error) { return s.keys(ctx, prefix) })
	if err != nil {
		return err
	}
	for _, key := range keys {
		value, err := shown(s.Get(ctx, key))
		if err != nil {
			return err
		}
		if value != nil && !yield(key, value) {
			break
		}
	}
	return nil
}

// keys returns, in order, all keys with the prefix that may have a record. It
// is called inside a call.
func (s *store) keys(ctx context.Context, prefix string) ([]string, error) {
	files, err := s.disk.names()
	if err != nil {
		return nil, grant.NotSent(err)
	}
	var keys []string
	for _, f := range files {
		// Locks count too. While a record is being replaced, some file systems
		// do not show its name to a process that reads the directory, but a
		// lock exists before its record, and stays.
		name, ok := strings.CutPrefix(f, lockPrefix)
		if !ok {
			name, ok = strings.CutPrefix(f, recordPrefix)
		}
		if !ok {
			continue
		}
		key, long, ok := keyOfName(name)
		if long {
			key, ok, err = s.longKey(ctx, name)
		}
		if err != nil {
			return nil, err
		}
		if ok && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// longKey returns the key in the record with a NAME.
func (s *store) longKey(ctx context.Context, name string) (key string, ok bool, err error) {
	if readsTakeLock {
		unlock, err := s.lock(ctx, name)
		if err != nil {
			return "", false, grant.NotSent(err)
		}
		defer unlock()
	}
	data, _, err := s.disk.read(recordPrefix + name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil // only a lock
	}
	if err != nil {
		return "", false, grant.NotSent(err)
	}
	key, _, err = decodeRecord(data)
	if err == nil && fileName(key) != name {
		err = fmt.Errorf("it belongs to key %q: %w", key, grant.ErrDamaged)
	}
	if err != nil {
		return "", false, grant.NotSent(s.recordError(name, err))
	}
	return key, true, nil
}

// Time returns the clock of this machine, which all processes that share the
// directory use. So it differs from a member's clock only if the member was
// given one of its own (Now of grant.MemberOptions). It cannot reveal that the
// machine's clock is wrong, because members would compare it with itself.
//
// It is still useful: a member that finds old records when it starts knows at
// once that its clock is the store's, and need not watch whether others renew.
func (s *store) Time(ctx context.Context) (now time.Time, resolution time.Duration, err error) {
	// Without the monotonic reading.
	now, err = do(ctx, s, func() (time.Time, error) { return time.Now().Round(0).UTC(), nil })
	return now, time.Nanosecond, err
}

// Pace has a window of 30 seconds, shorter than that of any other store: the
// disk is local, and the node ID of a crashed process becomes free sooner.
func (s *store) Pace() grant.Pace { return grant.Pace{Window: 30 * time.Second} }

// Close closes the store. It waits for the calls that are accessing the disk;
// those that wait for a lock end at once. If the disk does not answer within
// 10 s, it returns an error, and the last call to end closes the directory.
func (s *store) Close() error {
	s.mu.Lock()
	again := s.ctx.Err() != nil
	s.cancel()
	s.mu.Unlock()
	if again {
		return nil
	}
	closed := make(chan error, 1)
	go func() {
		s.calls.Wait()
		closed <- s.disk.close()
	}()
	select {
	case err := <-closed:
		return err
	case <-time.After(closeSilence):
		return fmt.Errorf("dirstore: the disk of %s has not answered for %v: check the disk and its mount", s.path,
			closeSilence)
	}
}
