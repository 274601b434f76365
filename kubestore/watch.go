package kubestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/firnid/firn/grant"
)

const (
	// rewatch is the minimum wait before an ended watch is restarted; the
	// maximum is five times as long. A server that stops ends all its watches
	// at once, and they should not all return at once.
	rewatch = time.Second

	// watchFor is the minimum duration of one watch; the maximum is twice as
	// long.
	watchFor = 5 * time.Minute
)

// Watch reports changes of a key until ctx is done or the store is closed. It
// also reports when it begins, and when it restarts after a failure, because
// changes may have been missed.
func (s *store) Watch(ctx context.Context, key string) <-chan struct{} {
	changes := make(chan struct{}, 1) // so that notifying never waits
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || ctx.Err() != nil || grant.CheckKey(key) != nil {
		close(changes) // no change can follow
		return changes
	}
	notify := func() {
		select {
		case changes <- struct{}{}:
		default: // a value is already waiting
		}
	}
	name, _ := nameOf(s.prefix, key)
	s.watchers.Go(func() {
		defer close(changes)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		for {
			notify()
			// Without a resourceVersion, it begins with the current state.
			_ = s.events(ctx, name, "", func(string, *lease) bool { notify(); return true })
			select {
			case <-ctx.Done():
				return
			case <-time.After(rewatch + rand.N(4*rewatch)):
			}
		}
	})
	return changes
}

// errStopped is the error of events if yield has returned false.
var errStopped = errors.New("kubestore: stopped")

// events calls yield with the events of a Lease after a resourceVersion, in
// order, until yield returns false; the error is then errStopped. Without an
// error, the server has ended the watch.
func (s *store) events(ctx context.Context, name, from string, yield func(kind string, l *lease) bool) error {
	lasts := watchFor + rand.N(watchFor)
	ctx, cancel := context.WithTimeout(ctx, lasts+time.Minute)
	defer cancel()
	answer, _, err := s.send(ctx, http.MethodGet, s.url("", watchQuery(name, from, lasts)), nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	stream := json.NewDecoder(answer.Body)
	for {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := stream.Decode(&event); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("watch lease %s: %w", name, err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED", "DELETED":
		case "ERROR":
			return fmt.Errorf("watch lease %s: %s", name, event.Object)
		default:
			continue
		}
		l := new(lease)
		if err := json.Unmarshal(event.Object, l); err != nil {
			return fmt.Errorf("watch lease %s: %w", name, err)
		}
		if l.Metadata.Name == name && !yield(event.Type, l) {
			return errStopped
		}
	}
}
