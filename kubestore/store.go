package kubestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store       = (*store)(nil)
	_ grant.MultiGetter = (*store)(nil)
	_ grant.Watcher     = (*store)(nil)
	_ grant.Lineage     = (*store)(nil)
	_ grant.Dangers     = (*store)(nil)
	_ grant.Paced       = (*store)(nil)
)

const (
	// inOrder is how many keys GetMany reads one after the other, as
	// grant.MultiGetter requires. More keys are read concurrently.
	inOrder = 8

	// page is how many Leases a List fetches at once.
	page = 500

	// defaultWindow is longer than an upgrade of a control plane with one
	// server.
	defaultWindow = 10 * time.Minute
)

// A store is the grant.Store that Open returns.
type store struct {
	client    *http.Client
	leases    *url.URL // of all Leases in the namespace
	namespace string
	prefix    string
	dialer    func(ctx context.Context, network, address string) (net.Conn, error)

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc

	revision atomic.Uint64          // the last that Lineage has seen
	wentBack atomic.Pointer[string] // that the revision went back; nil if it never did

	mu       sync.Mutex     // held while adding to watchers, and while Close begins
	watchers sync.WaitGroup // goroutines of Watch
}

// Pace has a window of 10 minutes. The upgrade of a control plane can take that
// long.
func (s *store) Pace() grant.Pace { return grant.Pace{Window: defaultWindow} }

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
func (s *store) failed(ctx context.Context, what string, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("kubestore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("kubestore: %s: %w", what, err)
}

// fetch returns the Lease with a name, or nil. It returns the state in the API
// server's etcd: a request without a resourceVersion is not answered from a
// cache.
func (s *store) fetch(ctx context.Context, name string) (*lease, error) {
	l := new(lease)
	switch err := s.read(ctx, s.url(name, nil), l); {
	case isAbsent(err, name):
		return nil, nil
	case err != nil:
		return nil, err
	case l.Metadata.Name != name || l.Metadata.UID == "" || l.Metadata.ResourceVersion == "":
		return nil, fmt.Errorf("the answer is not lease %s: is the API server's address right?", name)
	}
	return l, nil
}

// isAbsent reports whether err means that no Lease has the name.
func isAbsent(err error, name string) bool {
	r, ok := err.(*refusal)
	return ok && r.code == http.StatusNotFound && r.status.Details.Kind == "leases" && r.status.Details.Name == name
}

// Get returns the value of a key, or nil.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	name, _ := nameOf(s.prefix, key)
	l, err := s.fetch(call, name)
	var value []byte
	if l != nil && err == nil {
		value, err = l.value()
	}
	if err != nil {
		return nil, s.failed(ctx, fmt.Sprintf("get key %q", key), err)
	}
	return value, nil
}

// GetMany returns the values of all keys. Each is as fresh as that of Get, and
// up to 8 keys are read in order. The API reads one object per request, so 8
// keys are 8 requests; a member that finds no free node ID asks for 128.
func (s *store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	call, leave, err := s.enter(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer leave()
	call, cancel := context.WithCancelCause(call)
	defer cancel(nil)
	values := make([][]byte, len(keys))
	var reading sync.WaitGroup
	for from := 0; from < len(keys); from += inOrder {
		reading.Go(func() {
			for i := from; i < min(from+inOrder, len(keys)); i++ {
				name, _ := nameOf(s.prefix, keys[i])
				l, err := s.fetch(call, name)
				if err != nil {
					cancel(err) // the first error counts
					return
				}
				if l != nil {
					values[i] = l.shown()
				}
			}
		})
	}
	reading.Wait()
	if call.Err() != nil {
		return nil, s.failed(ctx, fmt.Sprintf("get %d keys", len(keys)), context.Cause(call))
	}
	return values, nil
}

// A leaseList is a page of Leases.
type leaseList struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue        string `json:"continue"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []*lease `json:"items"`
}

// list reads a page of Leases. Any other answer, for example of a proxy, must
// not count as an empty list.
func (s *store) list(ctx context.Context, query url.Values) (*leaseList, error) {
	list := new(leaseList)
	if err := s.read(ctx, s.url("", query), list); err != nil {
		return nil, err
	}
	if list.Kind != "LeaseList" || list.Metadata.ResourceVersion == "" {
		return nil, errors.New("the answer is not a list of leases: is the API server's address right?")
	}
	return list, nil
}

// List calls yield for every key with the prefix, as they were at one moment
// after the call. It first fetches all Leases of the namespace, in pages, and
// keeps the requested values: names are not in the order of keys, and a label
// changed by hand must not hide a record.
func (s *store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	found, err := s.collect(call, prefix)
	if err != nil {
		return s.failed(ctx, fmt.Sprintf("list keys with %q", prefix), err)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if call.Err() != nil {
			return s.failed(ctx, fmt.Sprintf("list keys with %q", prefix), call.Err())
		}
		if !yield(key, found[key]) {
			return nil
		}
	}
	return nil
}

// collect returns all keys with a prefix and their values. If the API server's
// etcd has compacted the revision of a list in progress, it starts over.
func (s *store) collect(ctx context.Context, prefix string) (map[string][]byte, error) {
	all := make(map[string][]byte)
	from := ""
	for {
		query := url.Values{"limit": {strconv.Itoa(page)}}
		if from != "" {
			query.Set("continue", from)
		}
		list, err := s.list(ctx, query)
		if from != "" && is(err, http.StatusGone) && ctx.Err() == nil {
			clear(all)
			from = ""
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range list.Items {
			key, ok := keyOf(s.prefix, l.Metadata.Name, l.Metadata.Annotations[keyAnnotation])
			switch {
			case ok && strings.HasPrefix(key, prefix):
				all[key] = l.shown()
			case !ok && strings.HasPrefix(l.Metadata.Name, namePrefix(s.prefix)+hashMark):
				return nil, l.foreign("its annotation %s has no key of this name", keyAnnotation)
			}
		}
		if from = list.Metadata.Continue; from == "" {
			return all, nil
		}
	}
}

// Lineage returns the UID of the Lease firn-identity, which it creates if it
// does not exist: a namespace that was deleted and created again has a
// different one. The revision is always 0: the API guarantees only that
// resourceVersions differ, and a control plane may restart them without a loss.
// If they went back, Check reports it.
func (s *store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	for range 2 { // before and after creating it
		before := s.revision.Load()
		list, err := s.list(call, url.Values{"fieldSelector": {"metadata.name=" + identityName}})
		if err != nil {
			return "", 0, s.failed(ctx, "read lease "+identityName, err)
		}
		s.observe(before, list.Metadata.ResourceVersion)
		if len(list.Items) == 1 && list.Items[0].Metadata.Name == identityName && list.Items[0].Metadata.UID != "" {
			return list.Items[0].Metadata.UID, 0, nil
		}
		if len(list.Items) != 0 {
			return "", 0, s.failed(ctx, "read lease "+identityName, fmt.Errorf("the answer has %d other leases",
				len(list.Items)))
		}
		l := newLease(s.namespace, identityName)
		// The next read shows whether it was created, and by which request.
		_, _, err = s.write(call, http.MethodPost, s.url("", nil), l)
		if r, ok := errors.AsType[*refusal](err); err != nil && !(ok && r.isAboutLease("AlreadyExists", identityName)) {
			return "", 0, s.failed(ctx, "create lease "+identityName, err)
		}
	}
	return "", 0, s.failed(ctx, "create lease "+identityName,
		fmt.Errorf("it is gone again: does another program delete leases in namespace %s?", s.namespace))
}

// observe compares a resourceVersion with one that was seen before the request.
func (s *store) observe(before uint64, resourceVersion string) {
	now, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	s.revision.Store(now)
	if now < before {
		s.wentBack.Store(new(fmt.Sprintf("the resourceVersion of the cluster went back from %d to %d: if its etcd was "+
			"restored from a backup, fence every sequencer at once (firn node fence)", before, now)))
	}
}

// Dangers reports whether Lineage has found that the resourceVersion of the
// cluster went back. It makes no request.
func (s *store) Dangers(ctx context.Context) (dangers []string, err error) {
	_, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	leave()
	if back := s.wentBack.Load(); back != nil {
		dangers = append(dangers, *back)
	}
	return dangers, nil
}

// Close closes the store and ends all watches. Calls in progress end with an
// error.
func (s *store) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.watchers.Wait()
	return nil
}
