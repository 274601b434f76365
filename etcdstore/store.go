package etcdstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firnid/firn/grant"
)

var (
	_ grant.Store       = (*store)(nil)
	_ grant.MultiGetter = (*store)(nil)
	_ grant.Watcher     = (*store)(nil)
	_ grant.Lineage     = (*store)(nil)
	_ grant.Dangers     = (*store)(nil)
)

const (
	// page is how many keys a List fetches at once: at most 2 MB.
	page = 512

	// maxOps is how many keys GetMany reads at once: the default limit of etcd
	// (--max-txn-ops).
	maxOps = 128
)

// A store is the grant.Store that Open returns.
type store struct {
	client *clientv3.Client
	prefix string // of all keys in etcd; begins and ends with a slash

	endpoints []string
	tls       *tls.Config // nil without TLS; for Time

	cluster atomic.Uint64 // the ID of the current one; 0 before the first answer

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc

	mu       sync.Mutex     // held while adding to watchers, and while Close begins
	watchers sync.WaitGroup // goroutines of Watch
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
	ctx, cancel := context.WithCancel(context.WithValue(ctx, outcomeKey{}, new(outcome)))
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

// failed returns the error of a call that ended with err. ctx is that of enter.
func failed(ctx context.Context, what string, err error) error {
	cause, last := ctx.Err(), ctx.Value(outcomeKey{}).(*outcome).last()
	switch {
	case cause != nil && last != nil && rpctypes.ErrorDesc(last) != cause.Error(): // the client returns no more than cause
		return fmt.Errorf("etcdstore: %s: %w: %s", what, cause, rpctypes.ErrorDesc(last))
	case cause != nil && !errors.Is(err, cause):
		return fmt.Errorf("etcdstore: %s: %w: %w", what, cause, err)
	}
	return fmt.Errorf("etcdstore: %s: %w", what, err)
}

// Get returns the value of a key, or nil.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	var r *clientv3.GetResponse
	err = s.ask(call, func() (_ *pb.ResponseHeader, err error) {
		r, err = s.client.Get(call, s.prefix+key)
		return (*pb.RangeResponse)(r).GetHeader(), err
	})
	if err != nil {
		return nil, failed(call, fmt.Sprintf("get key %q", key), err)
	}
	return s.value(r.Kvs)
}

// value returns the one value, or nil. Its bytes belong to the answer, which is
// not shared.
func (s *store) value(kvs []*mvccpb.KeyValue) ([]byte, error) {
	if len(kvs) == 0 {
		return nil, nil
	}
	if len(kvs[0].Value) == 0 { // nil would mean that it can be created
		return nil, fmt.Errorf("%w: etcdstore: key %q in etcd has an empty value, which no Store has written: another "+
			"program writes to %s: %w",
			grant.ErrNotSent, kvs[0].Key, s.prefix, grant.ErrDamaged)
	}
	return kvs[0].Value, nil
}

// shown returns the value of one of many keys or, for a damaged one, the text
// of the error.
func (s *store) shown(kvs []*mvccpb.KeyValue) []byte {
	value, err := s.value(kvs)
	if err != nil {
		return []byte(err.Error())
	}
	return value
}

// CAS replaces old by next, in one transaction that compares values; see
// grant.Store.
func (s *store) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	if err := grant.CheckValue(next); err != nil {
		return false, err
	}
	call, leave, err := s.enter(ctx, key)
	if err != nil {
		return false, err
	}
	defer leave()
	name := s.prefix + key
	same := clientv3.Compare(clientv3.Value(name), "=", string(old))
	if len(old) == 0 {
		same = clientv3.Compare(clientv3.CreateRevision(name), "=", 0)
	}
	o := call.Value(outcomeKey{}).(*outcome)
	o.isCAS = true
	r, err := s.client.Txn(call).If(same).Then(clientv3.OpPut(name, string(next))).Commit()
	if err == nil {
		current := s.cluster.Load()
		if r.Header.ClusterId == current {
			return r.Succeeded, nil
		}
		_ = s.belongs(call, r.Header.ClusterId)
		return false, failed(call, fmt.Sprintf("replace key %q", key), foreign(r.Header.ClusterId, current))
	}
	if last := o.last(); last != nil && call.Err() == nil {
		err = last // err may be that of sendOnce
	}
	err = failed(call, fmt.Sprintf("replace key %q", key), err)
	if o.unknown() {
		return false, err
	}
	return false, grant.NotSent(err)
}

// GetMany returns the values of all keys. Each group of 128 keys is read at one
// moment in one round trip. The values are as fresh as those of Get.
func (s *store) GetMany(ctx context.Context, keys []string) ([][]byte, error) {
	call, leave, err := s.enter(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer leave()
	values := make([][]byte, 0, len(keys))
	ops := make([]clientv3.Op, 0, min(len(keys), maxOps))
	for len(values) < len(keys) {
		ops = ops[:0]
		for _, key := range keys[len(values):min(len(values)+maxOps, len(keys))] {
			ops = append(ops, clientv3.OpGet(s.prefix+key))
		}
		var r *clientv3.TxnResponse
		err := s.ask(call, func() (_ *pb.ResponseHeader, err error) {
			r, err = s.client.Txn(call).Then(ops...).Commit()
			return (*pb.TxnResponse)(r).GetHeader(), err
		})
		if err != nil {
			return nil, failed(call, fmt.Sprintf("get %d keys", len(keys)), err)
		}
		for _, response := range r.Responses {
			values = append(values, s.shown(response.GetResponseRange().Kvs))
		}
	}
	return values, nil
}

// List calls yield for every key with the prefix, as they were at one moment
// after the call. If etcd compacts that revision, List continues with a later
// one. Entries in the namespace whose names are not valid keys are omitted.
func (s *store) List(ctx context.Context, prefix string, yield func(key string, value []byte) bool) error {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	from, end := s.prefix+prefix, clientv3.GetPrefixRangeEnd(s.prefix+prefix)
	var revision int64 // 0 is the latest
	for {
		var r *clientv3.GetResponse
		err := s.ask(call, func() (_ *pb.ResponseHeader, err error) {
			r, err = s.client.Get(call, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			return (*pb.RangeResponse)(r).GetHeader(), err
		})
		// Another cluster may not have reached this revision.
		if revision != 0 && (errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, rpctypes.ErrFutureRev)) {
			revision = 0
			continue
		}
		if err != nil {
			return failed(call, fmt.Sprintf("list keys with %q", prefix), err)
		}
		revision = cmp.Or(revision, r.Header.Revision)
		for _, kv := range r.Kvs {
			if call.Err() != nil {
				return failed(call, fmt.Sprintf("list keys with %q", prefix), call.Err())
			}
			key := strings.TrimPrefix(string(kv.Key), s.prefix)
			if grant.CheckKey(key) != nil {
				continue
			}
			if !yield(key, s.shown([]*mvccpb.KeyValue{kv})) {
				return nil
			}
		}
		if !r.More || len(r.Kvs) == 0 {
			return nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}

// Lineage returns the cluster's ID and its revision, which includes everything
// that returned before the call.
func (s *store) Lineage(ctx context.Context) (identity string, revision int64, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return "", 0, err
	}
	defer leave()
	// No key has this name, so the answer is only a header; a user who may read
	// the prefix may read it.
	var r *clientv3.GetResponse
	err = s.ask(call, func() (_ *pb.ResponseHeader, err error) {
		r, err = s.client.Get(call, s.prefix)
		return (*pb.RangeResponse)(r).GetHeader(), err
	})
	if err != nil {
		return "", 0, failed(call, "read the revision", err)
	}
	return strconv.FormatUint(r.Header.ClusterId, 16), r.Header.Revision, nil
}

// Close closes the store and ends all watches. Calls in progress end with an
// error.
func (s *store) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	err := s.client.Close()
	s.watchers.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("etcdstore: close: %w", err)
	}
	return nil
}
