package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firnid/firn/grant"
)

const (
	// statusTimeout is per endpoint; unreachable ones never answer.
	statusTimeout = time.Second

	// defaultQuota is etcd's default, for a member that does not report its
	// quota.
	defaultQuota = 2 << 30
)

// A member is the status that one endpoint reports.
type member struct {
	endpoint string
	status   *clientv3.StatusResponse
	err      error
}

// status asks all endpoints at once.
func (s *store) status(ctx context.Context) []member {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	members := make([]member, len(s.endpoints))
	var wg sync.WaitGroup
	for i, e := range s.endpoints {
		wg.Go(func() {
			r, err := s.client.Status(ctx, e)
			members[i] = member{e, r, err}
		})
	}
	wg.Wait()
	return members
}

// tooOld returns an error if a member that has answered is older than 3.5.5, in
// which a single member could lose acknowledged writes (etcd-io/etcd#14370).
func tooOld(members []member) error {
	for _, m := range members {
		if m.err != nil {
			continue
		}
		if v, ok := parseVersion(m.status.Version); ok && slices.Compare(v[:], []int{3, 5, 5}) < 0 {
			return fmt.Errorf("%w: %s runs %s, but 3.5.5 is the oldest durable version: upgrade it, preferably to the latest "+
				"3.6 or 3.7",
				grant.ErrUnfit, m.endpoint, m.status.Version)
		}
	}
	return nil
}

// oneCluster returns an error if two members that have answered belong to
// different clusters: a read and a CAS would then go to two stores.
func oneCluster(members []member) error {
	var first *member
	for i, m := range members {
		switch {
		case m.err != nil:
		case first == nil:
			first = &members[i]
		case m.status.Header.ClusterId != first.status.Header.ClusterId:
			return fmt.Errorf("%w: %s and %s are members of two different clusters, so IDs would repeat: name the endpoints "+
				"of one cluster",
				grant.ErrOptions, first.endpoint, m.endpoint)
		}
	}
	return nil
}

func parseVersion(text string) (v [3]int, ok bool) {
	n, _ := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2])
	return v, n == len(v)
}

// Dangers returns the dangers of this etcd, one sentence each, and nothing if
// all is well. It asks each endpoint, and changes nothing. The text of a danger
// stays the same while it lasts.
func (s *store) Dangers(ctx context.Context) (dangers []string, err error) {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	members := s.status(call)
	if !slices.ContainsFunc(members, func(m member) bool { return m.err == nil || isAuth(m.err) }) {
		return nil, failed(call, "ask for the status", members[0].err)
	}
	for _, err := range []error{tooOld(members), oneCluster(members)} {
		if err != nil {
			dangers = append(dangers, err.Error())
		}
	}
	for _, m := range members {
		dangers = append(dangers, m.dangers()...)
	}
	return dangers, nil
}

// dangers returns what one member reports.
func (m member) dangers() (found []string) {
	add := func(format string, args ...any) { found = append(found, m.endpoint+" "+fmt.Sprintf(format, args...)) }
	switch {
	case isAuth(m.err):
		add("does not report its status to this user, so its version and size are unknown: %v", m.err)
		return found
	case m.err != nil:
		add("does not answer")
		return found
	}
	st := m.status
	if st.Leader == 0 {
		add("has no leader")
	}
	if st.IsLearner {
		add("is a learner and serves no clients: remove it from the endpoints")
	}
	for _, e := range st.Errors {
		if !strings.Contains(e, "no leader") { // reported above
			add("reports: %s", e)
		}
	}
	quota := st.DbSizeQuota
	if quota <= 0 {
		quota = defaultQuota
	}
	if st.DbSize*10 >= quota*6 {
		add("uses over %d %% of its quota, at which etcd refuses writes: compact it and defragment it (etcdctl defrag, "+
			"one member after the other), or raise the quota (--quota-backend-bytes)", st.DbSize*10/quota*10)
	}
	return found
}
