package etcdstore

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

const (
	// asks is how often a read is repeated until the answer comes from the
	// right cluster. Endpoints of another one are excluded after the first
	// attempt.
	asks = 3

	// leaveOut is how long an endpoint of another cluster is excluded. After
	// that it may be a member again.
	leaveOut = time.Minute
)

// ask makes a call that only reads, and repeats it until the answer comes from
// the right cluster.
func (s *store) ask(ctx context.Context, call func() (*pb.ResponseHeader, error)) error {
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

// sort asks all endpoints for their cluster, because one has answered from a
// different cluster than the current one. If most of them belong to the other
// one, the cluster was replaced, for example by a restored one. Then that one
// becomes the current cluster, and Lineage shows it. Otherwise the endpoints of
// other clusters are excluded for a while.
func (s *store) sort(ctx context.Context, other uint64) {
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

// letIn readmits endpoints that were excluded long enough.
func (s *store) letIn() {
	if !s.sorting.TryLock() {
		return
	}
	defer s.sorting.Unlock()
	if !s.leftOut.IsZero() && time.Since(s.leftOut) > leaveOut {
		s.client.SetEndpoints(s.endpoints...)
		s.leftOut = time.Time{}
	}
}

// foreign returns the error for an answer of another cluster, which is not
// used.
func (s *store) foreign(cluster uint64) error {
	return fmt.Errorf("%w: an endpoint of cluster %x has answered, but this process uses %x: find that endpoint (etcdctl endpoint status --write-out=fields) and make it a member again, or remove it from the endpoints; if the cluster was replaced, fence its sequencers (firn node fence), then restart this process",
		errClusters, cluster, s.cluster.Load())
}
