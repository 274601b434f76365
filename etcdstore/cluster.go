package etcdstore

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// asks is how often a read is made until the answer is of the cluster that is
	// used. Endpoints of another are left out after the first.
	asks = 3

	// leaveOut is for how long an endpoint of another cluster is left out. Then it
	// may be a member again.
	leaveOut = time.Minute
)

// ask makes a call that only reads, again until the answer is of the cluster
// that is used.
func (s *Store) ask(ctx context.Context, call func() (*pb.ResponseHeader, error)) error {
	for n := 1; ; n++ {
		h, err := call()
		if err != nil {
			return err
		}
		s.cluster.CompareAndSwap(0, h.ClusterId)
		if h.ClusterId == s.cluster.Load() {
			return nil
		}
		s.sort(ctx, h.ClusterId)
		if h.ClusterId == s.cluster.Load() {
			return nil
		}
		if n == asks {
			return s.foreign(h.ClusterId)
		}
	}
}

// sort asks all endpoints of which cluster they are, because one has answered
// that is of another than the one that is used. If most of them are of the
// other, the cluster was replaced, by one that was restored for instance: then
// that one is used, and Lineage shows it. Otherwise those that are not of the
// one that is used are left out for a while.
func (s *Store) sort(ctx context.Context, other uint64) {
	s.sorting.Lock()
	defer s.sorting.Unlock()
	used := s.cluster.Load()
	var rest []string
	n := 0
	for _, m := range s.status(ctx) {
		switch {
		case m.err != nil || m.status.Header.ClusterId == used:
			rest = append(rest, m.endpoint)
		case m.status.Header.ClusterId == other:
			n++
		}
	}
	switch {
	case 2*n > len(s.endpoints):
		s.cluster.Store(other)
		s.client.SetEndpoints(s.endpoints...)
		s.leftOut = time.Time{}
	case len(rest) < len(s.endpoints) && len(rest) > 0:
		s.client.SetEndpoints(rest...)
		s.leftOut = time.Now()
	}
}

// letIn uses endpoints again that were left out long enough.
func (s *Store) letIn() {
	if !s.sorting.TryLock() {
		return
	}
	defer s.sorting.Unlock()
	if !s.leftOut.IsZero() && time.Since(s.leftOut) > leaveOut {
		s.client.SetEndpoints(s.endpoints...)
		s.leftOut = time.Time{}
	}
}

// foreign is of an answer that is not used, because another cluster has given
// it.
func (s *Store) foreign(cluster uint64) error {
	return fmt.Errorf("%w: cluster %x has answered, and this process uses %x: find the endpoint that is of it (etcdctl endpoint status --write-out=fields) and make it a member again, or leave it out; if the cluster was replaced, start this process again",
		ErrClusters, cluster, s.cluster.Load())
}
