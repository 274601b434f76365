package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// statusTimeout is per endpoint; unreachable ones never answer.
	statusTimeout = time.Second

	// defaultQuota is etcd's default, for a member that does not report its
	// quota.
	defaultQuota = 2 << 30

	// manyRevisions is more than an etcd with regular compaction keeps in a
	// day: the recommended five minutes hold this many at 1,600 writes per
	// second.
	manyRevisions = 500_000
)

// A member is the status that one endpoint reports.
type member struct {
	endpoint string
	status   *clientv3.StatusResponse
	err      error
}

// status asks all endpoints at once.
func (s *Store) status(ctx context.Context) []member {
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
		major, minor, patch, ok := parseVersion(m.status.Version)
		if ok && (major < 3 || major == 3 && (minor < 5 || minor == 5 && patch < 5)) {
			return fmt.Errorf("%w: %s runs %s, but 3.5.5 is the oldest durable version: upgrade it, preferably to the latest 3.6 or 3.7", ErrVersion, m.endpoint, m.status.Version)
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
			return fmt.Errorf("%w: %s and %s are members of two different clusters, so IDs would repeat: name the endpoints of one cluster", ErrOptions, first.endpoint, m.endpoint)
		}
	}
	return nil
}

func parseVersion(text string) (major, minor, patch int, ok bool) {
	text, _, _ = strings.Cut(text, "-")
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return 0, 0, 0, false
	}
	var n [3]int
	for i, p := range parts {
		var err error
		if n[i], err = strconv.Atoi(p); err != nil {
			return 0, 0, 0, false
		}
	}
	return n[0], n[1], n[2], true
}

// Check returns what an operator should know about this etcd, one sentence
// each, and nothing if all is well. It asks each endpoint, and determines the
// oldest revision that still exists. It changes nothing.
func (s *Store) Check(ctx context.Context) []string {
	call, leave, err := s.enter(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	defer leave()
	members := s.status(call)
	var found []string
	for _, err := range []error{tooOld(members), oneCluster(members)} {
		if err != nil {
			found = append(found, err.Error())
		}
	}
	return append(found, s.findings(call, members)...)
}

func (s *Store) findings(ctx context.Context, members []member) []string {
	var found []string
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, m := range members {
		if m.err != nil {
			if isAuth(m.err) {
				add("%s does not report its status to this user, so its version and size are unknown: %v", m.endpoint, m.err)
			} else {
				add("%s does not answer: %v", m.endpoint, m.err)
			}
			continue
		}
		st := m.status
		if major, minor, _, ok := parseVersion(st.Version); ok {
			if cmajor, cminor, _, _ := parseVersion(version.Version); major != cmajor || minor != cminor {
				add("%s runs etcd %s, and this client is version %s: they should work together, but are tested only within one minor version", m.endpoint, st.Version, version.Version)
			}
		}
		if st.Leader == 0 {
			add("%s has no leader", m.endpoint)
		}
		if st.IsLearner {
			add("%s is a learner and serves no clients: remove it from the endpoints", m.endpoint)
		}
		for _, e := range st.Errors {
			if !strings.Contains(e, "no leader") { // reported above
				add("%s reports: %s", m.endpoint, e)
			}
		}
		addSize(&found, m.endpoint, st)
	}
	if span, never, err := s.span(ctx); err == nil && span > manyRevisions {
		if never {
			add("etcd has kept all %d revisions since it was created: it is not compacted, and refuses writes when its quota is used up. Start it with --auto-compaction-mode=periodic --auto-compaction-retention=5m", span)
		} else {
			add("etcd keeps %d revisions: it seems to be compacted rarely or never. Start it with --auto-compaction-mode=periodic --auto-compaction-retention=5m", span)
		}
	}
	return found
}

// addSize adds a finding about the database size of a member, if necessary.
func addSize(found *[]string, endpoint string, st *clientv3.StatusResponse) {
	quota, which := st.DbSizeQuota, "its quota"
	if quota <= 0 {
		quota, which = defaultQuota, "etcd's default quota"
	}
	if st.DbSize*10 < quota*6 {
		return
	}
	what := "compact it, or raise the quota (--quota-backend-bytes)"
	if st.DbSizeInUse*2 < st.DbSize {
		what = "most of it is free: etcdctl defrag, one member after the other"
	}
	*found = append(*found, fmt.Sprintf("the database of %s has %d MB, %d %% of %s, of which %d MB are in use: %s. etcd refuses writes when it reaches the quota",
		endpoint, st.DbSize>>20, st.DbSize*100/quota, which, st.DbSizeInUse>>20, what))
}

// span returns how many revisions etcd still has, and whether it has all of
// them. etcd does not report the oldest revision; reading a revision shows
// whether it exists.
func (s *Store) span(ctx context.Context) (n int64, all bool, err error) {
	r, err := s.client.Get(ctx, s.prefix)
	if err != nil {
		return 0, false, err
	}
	last := r.Header.Revision
	there := func(revision int64) (bool, error) {
		_, err := s.client.Get(ctx, s.prefix, clientv3.WithRev(revision))
		if errors.Is(err, rpctypes.ErrCompacted) {
			return false, nil
		}
		return err == nil, err
	}
	if ok, err := there(1); err != nil || ok {
		return last, ok, err
	}
	low, high := int64(1), last // low is gone, high exists
	for low+1 < high {
		middle := low + (high-low)/2
		ok, err := there(middle)
		if err != nil {
			return 0, false, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return last - high + 1, false, nil
}
