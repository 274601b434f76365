package etcdstore

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// asks is how often a read is repeated until the answer comes from the right
// cluster. The client asks another endpoint each time.
const asks = 3

// ask makes a call that only reads, and repeats it until the answer comes from
// the right cluster.
func (s *store) ask(ctx context.Context, call func() (*pb.ResponseHeader, error)) error {
	for n := 1; ; n++ {
		h, err := call()
		if err != nil {
			return err
		}
		if err = s.belongs(ctx, h.ClusterId); err == nil || n == asks {
			return err
		}
	}
}

// belongs returns an error if an answer comes from a different cluster than the
// current one, which the first answer determines. If most endpoints belong to
// the other one, the cluster was replaced, for example by a restored one. Then
// that one becomes the current cluster, and Lineage shows it.
func (s *store) belongs(ctx context.Context, cluster uint64) error {
	s.cluster.CompareAndSwap(0, cluster)
	current := s.cluster.Load()
	if cluster == current {
		return nil
	}
	n := 0
	for _, m := range s.status(ctx) {
		if m.err == nil && m.status.Header.ClusterId == cluster {
			n++
		}
	}
	if 2*n > len(s.endpoints) {
		s.cluster.Store(cluster)
		return nil
	}
	return foreign(cluster, current)
}

// foreign returns the error for an answer of another cluster, which is not
// used.
func foreign(cluster, current uint64) error {
	return fmt.Errorf("%w: an endpoint of cluster %x has answered, but this process uses %x: find that endpoint "+
		"(etcdctl endpoint status --write-out=fields) and make it a member again, or remove it from the endpoints; if the "+
		"cluster was replaced, fence its sequencers (firn node fence), then restart this process",
		errClusters, cluster, current)
}
