package etcdstore

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// TestEndpointOfAnotherCluster: an endpoint that is unreachable during Open,
// and comes back as a cluster of its own, is not used. Its answers would be
// those of another store.
func TestEndpointOfAnotherCluster(t *testing.T) {
	e, away := startEtcd(t, nil), "http://"+proc.FreeAddress(t)
	s := open(t, Options{Endpoints: []string{e.endpoint, away}})
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("0")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	identity, _, err := s.Lineage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := startAt(t, away, nil).client(t, "", "")
	defer func() { _ = other.Close() }()
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
		got, err := s.Get(t.Context(), "a")
		many, errMany := s.GetMany(t.Context(), []string{"a", "b"})
		var listed []string
		errList := s.List(t.Context(), "", func(key string, value []byte) bool { listed = append(listed, key+string(value)); return true })
		id, _, errLineage := s.Lineage(t.Context())
		must.Do(t, errors.Join(err, errMany, errList, errLineage))
		if string(got) != value || string(many[0]) != value || many[1] != nil || !slices.Equal(listed, []string{"a" + value}) || id != identity {
			t.Fatalf("after %d CAS: Get %s, GetMany %q, List %q, Lineage %s, want %s of %s", n, got, many, listed, id, value, identity)
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
	if err != nil {
		t.Fatal(err)
	}
	e.Kill()
	startAt(t, e.endpoint, nil)
	waitFor(t, s)
	after, _, err := s.Lineage(t.Context())
	if err != nil || after == before {
		t.Errorf("Lineage = %s, %v, and was %s before", after, err, before)
	}
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("1")); !ok || err != nil {
		t.Errorf("CAS = %v, %v", ok, err)
	}
}
