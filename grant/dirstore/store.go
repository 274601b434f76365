package dirstore

import (
	"bytes"
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
	_ grant.Store       = (*Store)(nil)
	_ grant.MultiGetter = (*Store)(nil)
)

// A Store is a grant.Store in a directory.
// It must be made by Open. It is safe for use by many goroutines at once, and
// its directory by many Stores and processes of one machine at once.
//
// A CAS that was applied is durable: it outlives a crash of the process, of the
// system, and a loss of power, as far as the disk keeps what it has reported to
// be written. Get and CAS are linearizable over all processes, List is so key
// by key. A value that Get or List shows, or because of which CAS is refused,
// is durable.
//
// A call waits for as long as its context allows while another process holds
// the record's lock. A process that is killed leaves no lock; one that is
// stopped keeps those it has, of at most the records it was writing. If the disk
// does not answer, the call returns soon after its context is done, and what it
// has asked for keeps its lock until the disk has answered.
type Store struct {
	disk  disk
	path  string // for errors
	queue queue

	// failed is why the store refuses service, once it does.
	failed atomic.Pointer[failure]

	mu       sync.Mutex // guards what follows, and adding to calls
	closed   bool
	orphaned bool           // Close has returned before all calls ended
	running  int            // calls that have not ended, also if their callers have left
	left     int            // of these, those whose callers have left
	silent   time.Time      // when the first of these began
	calls    sync.WaitGroup // callers that are there
	closing  chan struct{}  // closed when Close begins, to end waiting
}

type failure struct{ err error }

// fail makes the store refuse service, and returns why.
func (s *Store) fail(err error) error {
	s.failed.CompareAndSwap(nil, &failure{fmt.Errorf("%w: %w", ErrFailed, err)})
	return s.failed.Load().err
}

// Get returns the value of a key, or nil.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	if err := grant.CheckKey(key); err != nil {
		return nil, err
	}
	return s.get(ctx, key)
}

func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	return do(ctx, s, func(*call) ([]byte, error) { return s.getNow(ctx, key) })
}

// getNow is get inside a call.
func (s *Store) getNow(ctx context.Context, key string) ([]byte, error) {
	name := fileName(key)
	if !readsTakeLock {
		value, settled, err := s.read(name, key)
		if settled || err != nil {
			return value, err
		}
	}
	unlock, err := s.lock(ctx, name)
	if err != nil {
		return nil, notSent(err)
	}
	defer unlock()
	return s.settled(ctx, name, key)
}

// read returns the value that a record's file has, nil if there is none, and
// whether it is known to be durable.
func (s *Store) read(name, key string) (value []byte, settled bool, err error) {
	data, settled, err := s.disk.read(recordPrefix + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, notSent(err)
	}
	found, value, err := decodeRecord(data)
	if err == nil && found != key {
		err = fmt.Errorf("%w: it is of key %q", ErrDamaged, found)
	}
	if err != nil {
		return nil, false, notSent(fmt.Errorf("key %q, file %s in %s: %w", key, recordPrefix+name, s.path, err))
	}
	return value, settled, nil
}

// settled returns the value of a record, and sees to it that it is durable. It
// is called under the record's lock.
func (s *Store) settled(ctx context.Context, name, key string) ([]byte, error) {
	value, settled, err := s.read(name, key)
	if settled || err != nil {
		return value, err
	}
	// Nobody is writing it, so its writer is gone, and may have gone before
	// the rename was durable. What is in the file was durable before the
	// rename; write the same once more, and be sure of the rename too.
	if err := s.write(ctx, new(call), name, key, value); err != nil {
		return nil, err
	}
	return value, nil
}

// CAS puts next in the place of old.
//
// An error that is not grant.ErrNotSent is ErrFailed too, unless the disk has not
// answered. A full disk, a file that may not be written, and a context that is
// done before the very last step leave everything as it was, and are
// grant.ErrNotSent.
func (s *Store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckKey(key); err != nil {
		return false, err
	}
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	// The caller may change its arguments once it has left.
	old, next = bytes.Clone(old), bytes.Clone(next)
	return do(ctx, s, func(c *call) (bool, error) { return s.casNow(ctx, c, key, old, next) })
}

// casNow is CAS inside a call.
func (s *Store) casNow(ctx context.Context, c *call, key string, old, next []byte) (bool, error) {
	name := fileName(key)
	unlock, err := s.lock(ctx, name)
	if err != nil {
		return false, notSent(err)
	}
	defer unlock()
	now, err := s.settled(ctx, name, key)
	if err != nil {
		return false, notSent(err) // whatever it is, next is not in it
	}
	if !bytes.Equal(now, old) {
		return false, nil
	}
	if err := s.write(ctx, c, name, key, next); err != nil {
		return false, err
	}
	return true, nil
}

// write makes value the durable value of a key. It is called under the record's
// lock. An error that is not grant.ErrNotSent leaves open whether it is, and
// the store has failed.
//
// The order is what everything rests on: content, fsync, rename, fsync, mark.
// TestCrashStates has a mutant for each step left out.
func (s *Store) write(ctx context.Context, c *call, name, key string, value []byte) error {
	temp, record := tempPrefix+name, recordPrefix+name
	if err := s.writeFile(temp, encodeRecord(key, value)); err != nil {
		// It may be there in part, and it takes room. If it cannot be
		// removed now, the next write of this key or the next Open does.
		_ = s.disk.remove(temp)
		return notSent(err)
	}
	// Open it now, so that no error of writing it is told to somebody else.
	dir, err := s.disk.directory()
	if err != nil {
		_ = s.disk.remove(temp)
		return notSent(err)
	}
	defer func() { _ = dir.Close() }()
	if err := s.rename(ctx, c, temp, record); err != nil {
		return err
	}
	// From here on others see it, and only the mark tells them to wait.
	if err := dir.Sync(); err != nil {
		return s.fail(fmt.Errorf("fsync of %s: %w", s.path, err))
	}
	// Without the mark it is only written once more by who reads it.
	_ = s.disk.settle(record)
	return nil
}

// writeFile makes a file whose content is durable. It is called under the lock
// that the name belongs to: a file that is there was left by a process that
// died.
func (s *Store) writeFile(name string, data []byte) error {
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

// rename renames, unless ctx is done by now. If the system refuses, that is
// certain; if it cannot tell, the store has failed.
func (s *Store) rename(ctx context.Context, c *call, from, to string) error {
	var w waiter
	defer w.stop()
	for {
		err := ctx.Err()
		if err == nil && !c.renames() {
			err = context.Canceled // the caller has left a moment ago
		}
		if err == nil {
			if err = s.disk.rename(from, to); err == nil {
				return nil
			}
			if isBusy(err) && w.waits < maxBusy && w.wait(ctx, s.closing) == nil {
				continue
			}
			if !isRefusal(err) {
				return s.fail(fmt.Errorf("rename of %s in %s: %w", from, s.path, err))
			}
		}
		_ = s.disk.remove(from)
		return notSent(err)
	}
}

// lock takes the lock of a record, as soon as nobody has it, and returns what
// gives it back.
func (s *Store) lock(ctx context.Context, name string) (unlock func(), err error) {
	line := s.queue.enter(name)
	leave := func() { s.queue.leave(name, line) }
	select {
	case line.turn <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, s.waited(ctx.Err(), name)
	case <-s.closing:
		leave()
		return nil, errClosed
	}
	leave = func() { <-line.turn; s.queue.leave(name, line) }

	var w waiter
	defer w.stop()
	l, err := s.disk.lock(lockPrefix + name)
	for isUnshared(err) && w.waits < maxUnshared && w.wait(ctx, s.closing) == nil {
		l, err = s.disk.lock(lockPrefix + name)
	}
	if err != nil {
		leave()
		return nil, err
	}
	for {
		ok, err := l.try()
		if err == nil && !ok {
			if err = w.wait(ctx, s.closing); err == nil {
				continue
			}
			err = s.waited(err, name)
		}
		if f := s.failed.Load(); f != nil && err == nil {
			err = f.err // while it waited
		}
		if err != nil {
			l.release()
			leave()
			return nil, err
		}
		return func() { l.release(); leave() }, nil
	}
}

// waited says what was waited for when err came.
func (s *Store) waited(err error, name string) error {
	if errors.Is(err, errClosed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		err = fmt.Errorf("%w: %w", s.silence(), err) // and so does not let go of the lock, perhaps
	}
	return fmt.Errorf("dirstore: another process or goroutine holds %s in %s: %w", lockPrefix+name, s.path, err)
}

// A waiter waits a little longer each time, by chance more or less, so that
// those who wait for one lock do not all come at once.
type waiter struct {
	timer *time.Timer
	pause time.Duration
	waits int
}

// The first pause is a part of what a CAS takes, the last is what a lock that
// was given back may be left unused.
const (
	firstPause = 50 * time.Microsecond
	lastPause  = 5 * time.Millisecond
)

// maxBusy is how often rename waits for a file that somebody else has open, a
// virus scanner for instance: for a few seconds. Only Windows knows of that.
const maxBusy = 1000

// maxUnshared is how often lock waits for another user who has made the lock's
// file and has not shared it yet: for about a second. It takes that one
// microseconds, unless it is stopped there.
const maxUnshared = 200

// wait returns nil after a while, or why there is nothing to wait for.
func (w *waiter) wait(ctx context.Context, closing <-chan struct{}) error {
	w.waits++
	w.pause = min(max(firstPause, w.pause*3/2), lastPause)
	pause := w.pause/2 + rand.N(w.pause)
	if w.timer == nil {
		w.timer = time.NewTimer(pause)
	} else {
		w.timer.Reset(pause)
	}
	select {
	case <-w.timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return errClosed
	}
}

func (w *waiter) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// GetMany returns the values of all keys, without locks: a value may be one
// that is not durable yet.
func (s *Store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	for _, key := range keys {
		if err := grant.CheckKey(key); err != nil {
			return nil, err
		}
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		value, err := s.glance(ctx, key)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// glance is Get that does not ask whether the value is durable.
func (s *Store) glance(ctx context.Context, key string) ([]byte, error) {
	return do(ctx, s, func(*call) ([]byte, error) {
		if readsTakeLock {
			return s.getNow(ctx, key)
		}
		value, _, err := s.read(fileName(key), key)
		return value, err
	})
}

// List calls yield for every key with the prefix. It looks at the names of all
// files of the store, and reads those whose key has the prefix.
func (s *Store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	keys, err := do(ctx, s, func(*call) ([]string, error) { return s.keys(ctx, prefix) })
	if err != nil {
		return err
	}
	for _, key := range keys {
		value, err := s.get(ctx, key)
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
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	files, err := s.disk.names()
	if err != nil {
		return nil, notSent(err)
	}
	var keys []string
	for _, f := range files {
		// Locks count too. While a record is being replaced some file systems
		// do not show its name to who is reading the directory, but a lock is
		// there before its record, and stays.
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

// longKey returns the key that stands in the record with a NAME.
func (s *Store) longKey(ctx context.Context, name string) (key string, ok bool, err error) {
	if readsTakeLock {
		unlock, err := s.lock(ctx, name)
		if err != nil {
			return "", false, notSent(err)
		}
		defer unlock()
	}
	data, _, err := s.disk.read(recordPrefix + name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil // a lock alone
	}
	if err != nil {
		return "", false, notSent(err)
	}
	key, _, err = decodeRecord(data)
	if err == nil && fileName(key) != name {
		err = fmt.Errorf("%w: it is of key %q", ErrDamaged, key)
	}
	if err != nil {
		return "", false, notSent(fmt.Errorf("file %s in %s: %w", recordPrefix+name, s.path, err))
	}
	return key, true, nil
}

// Window is the usual length of a grant kept in a directory. It is half that of
// other stores: the disk is as near as the process, and a number of one that
// crashed is free again the sooner.
func (s *Store) Window() time.Duration { return 30 * time.Second }

// Close ends the use of the store. It waits for the calls under way, which are
// those that are busy with the disk: those that wait for a lock end at once.
// Those whose callers have left, as the disk does not answer, it does not wait
// for: the last of them closes the directory.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return nil
	}
	close(s.closing)
	s.calls.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running > 0 {
		s.orphaned = true
		return fmt.Errorf("%w; %d calls are left there", s.silence(), s.running)
	}
	return s.disk.close()
}
