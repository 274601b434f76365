package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// TestEndpointOfAnotherCluster: an endpoint that is unreachable during Open,
// and comes back as a cluster of its own, is not used. Its answers would be
// those of another store.
func TestEndpointOfAnotherCluster(t *testing.T) {
	e, away := startEtcd(t, nil), "http://"+proc.FreeAddress(t)
	s := open(t, Options{Endpoints: []string{e.endpoint, away}})
	calls.CAS(t, s, "a", "", "0")
	identity, _, err := s.Lineage(t.Context())
	must.Do(t, err)
	other := startAt(t, away, nil).client(t, "", "")
	// It has a copy of the data, like a restored one.
	must.Get(other.Put(t.Context(), "/firn/a", "0"))(t)

	unknown, value := 0, "0"
	for n, begin := 1, time.Now(); n <= 30 || unknown == 0 && time.Since(begin) < must.Patience; n++ {
		next := fmt.Sprint(n)
		switch ok, err := s.CAS(t.Context(), "a", []byte(value), []byte(next)); {
		case ok && err == nil:
			value = next
		case errors.Is(err, errClusters) && !ok && !errors.Is(err, grant.ErrNotSent):
			unknown++
		default:
			t.Fatalf("CAS(%s, %s) = %v, %v, want true or errClusters", value, next, ok, err)
		}
		calls.Get(t, s, "a", value)
		many, errMany := s.GetMany(t.Context(), []string{"a", "b"})
		keys, listed := calls.List(t, s, "")
		id, _, errLineage := s.Lineage(t.Context())
		must.Do(t, errors.Join(errMany, errLineage))
		if string(many[0]) != value || many[1] != nil || len(keys) != 1 || listed["a"] != value || id != identity {
			t.Fatalf("after %d CAS: GetMany %q, List %q, Lineage %s, want %s of %s",
				n, many, listed, id, value, identity)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if unknown == 0 {
		t.Error("no answer of the other cluster came: this tests nothing")
	}
}

// TestReplacedCluster: a cluster that replaces the previous one is used, and
// Lineage shows it.
func TestReplacedCluster(t *testing.T) {
	e := startEtcd(t, nil)
	s := open(t, Options{Endpoints: []string{e.endpoint}})
	before, _, err := s.Lineage(t.Context())
	must.Do(t, err)
	e.Kill()
	startAt(t, e.endpoint, nil)
	must.Await(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := s.Get(ctx, "a")
		return err == nil
	}, "it is connected")
	after, _, err := s.Lineage(t.Context())
	if err != nil || after == before {
		t.Errorf("Lineage = %s, %v, and was %s before", after, err, before)
	}
	calls.CAS(t, s, "a", "", "1")
}
