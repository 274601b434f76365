//go:build unix

package kubestore

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// TestWentBack: a cluster whose etcd was restored has the same identity and an
// earlier resourceVersion, which Check reports.
func TestWentBack(t *testing.T) {
	_, p, _, s, _ := proxied(t)
	before, _, err := s.Lineage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if dangers, err := s.Dangers(t.Context()); err != nil || len(dangers) > 0 {
		t.Fatalf("Dangers = %q, %v, want nothing", dangers, err)
	}
	version := regexp.MustCompile(`"resourceVersion":"\d+"`)
	p.set(func(w http.ResponseWriter, q *http.Request, pass func() passed) bool {
		if q.URL.Query().Get("fieldSelector") == "" {
			return false
		}
		a := pass()
		a.body = version.ReplaceAll(a.body, []byte(`"resourceVersion":"1"`))
		a.to(w)
		return true
	})
	after, revision, err := s.Lineage(t.Context())
	if err != nil || after != before || revision != 0 {
		t.Errorf("Lineage after a restore = %q, %d, %v, want %q, 0", after, revision, err, before)
	}
	p.set(nil)
	if _, _, err := s.Lineage(t.Context()); err != nil {
		t.Fatal(err)
	}
	dangers, err := s.Dangers(t.Context())
	if err != nil || len(dangers) != 1 || !strings.Contains(dangers[0], "went back") || !strings.Contains(dangers[0], "fence") {
		t.Errorf("Dangers after a restore = %q, %v, want one danger", dangers, err)
	}
}

// TestListPages: a List of more Leases than a page, with others in between; and
// one whose next page was compacted away, which starts over.
func TestListPages(t *testing.T) {
	c, p, namespace, s, _ := proxied(t)
	other := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, ""), Prefix: "firn/v1"})
	const n = page + 30
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := w; i < n; i += 8 {
				mustCAS(t, s, fmt.Sprintf("v1/K/%05d", i), nil, []byte("1"))
				if i%50 == 0 {
					mustCAS(t, other, fmt.Sprintf("k/%05d", i), nil, []byte("1"))
				}
			}
		})
	}
	writers.Wait()
	// A label that was changed by hand hides nothing.
	name, _ := nameOf("firn", "v1/K/00007")
	if code, text := c.Patch(fmt.Sprintf(leasesPath, namespace)+name, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm","firn/prefix":null}}}`); code != http.StatusOK {
		t.Fatalf("patch: %d %s", code, text)
	}
	list := func() (keys []string) {
		t.Helper()
		must.Do(t, s.List(t.Context(), "v1/", func(key string, _ []byte) bool { keys = append(keys, key); return true }))
		if len(keys) != n || !slices.IsSorted(keys) {
			t.Errorf("List yields %d keys, sorted %v, want %d, sorted", len(keys), slices.IsSorted(keys), n)
		}
		return keys
	}
	list()
	gone, begun := 0, 0
	p.set(func(w http.ResponseWriter, q *http.Request, _ func() passed) bool {
		if q.URL.Query().Get("limit") == "" {
			return false
		}
		if q.URL.Query().Get("continue") == "" {
			begun++
			return false
		}
		if gone++; gone > 2 {
			return false
		}
		answer(w, http.StatusGone, "Expired")
		return true
	})
	list()
	p.set(nil)
	if begun != 3 {
		t.Errorf("List whose pages were compacted away twice has begun %d times, want 3", begun)
	}
}

// TestDescribed: a Lease shows people the contents of its record.
func TestDescribed(t *testing.T) {
	c := sharedCluster(t)
	namespace := newNamespace(t, c)
	s := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, ""), Prefix: "prod/eu"})
	record := func(state string, until int64) []byte {
		return fmt.Appendf(nil, `{"v":3,"nonce":"b7e2905d1c4f86a3370e1d92c85fa6b4","owner":"d41f0a6738be52c99e07ab135c64f820","until":%d,"wall":1795132800000,"state":%q,"host":"ids-7f9c"}`, until, state)
	}
	var last []byte
	for _, tt := range []struct {
		value []byte
		want  string
	}{
		{record("held", 1795132860000), `"holderIdentity":"ids-7f9c/d41f0a67","leaseDurationSeconds":60,"renewTime":"2026-11-20T00:00:00.000000Z"`},
		{record("closing", 1795132800001), `"leaseDurationSeconds":1,"renewTime"`},
		{record("held", 1795132700000), `"leaseDurationSeconds":1,"renewTime"`},
		{record("held", 4611686018427), `"leaseDurationSeconds":2147483647,"renewTime"`},
		{record("free", 1795132800000), `"spec":{}`},
		{[]byte(`{"v":3,"spans":[]}`), `"spec":{}`},
		{[]byte("not a record"), `"spec":{}`},
		{[]byte("\xff\x00"), `"firn/record-base64":"/wA="`},
	} {
		mustCAS(t, s, "v1/Orders/n/0042", last, tt.value)
		last = tt.value
		name, _ := nameOf("prod/eu", "v1/Orders/n/0042")
		text := string(c.Must("GET", fmt.Sprintf(leasesPath, namespace)+name, ""))
		for _, want := range []string{tt.want, `"firn/key":"v1/Orders/n/0042"`, `"app.kubernetes.io/managed-by":"firn"`, `"firn/prefix":"prod.eu"`, `"firn/sequencer":"Orders"`} {
			if !strings.Contains(text, want) {
				t.Errorf("the Lease of %q does not have %s: %s", tt.value, want, text)
			}
		}
		if v, err := s.Get(t.Context(), "v1/Orders/n/0042"); string(v) != string(tt.value) || err != nil {
			t.Errorf("Get = %q, %v, want %q", v, err, tt.value)
		}
	}
	mustCAS(t, s, "v1/a:b/config", nil, []byte(`{"state":"attached"}`)) // not a valid label value
	mustCAS(t, s, "v1/"+strings.Repeat("A", 128)+"/n/0001", nil, record("held", 1795132860000))
}

// TestForeignLeases: Leases of others are ignored, and one that lost its record
// is damaged, not absent.
func TestForeignLeases(t *testing.T) {
	c := sharedCluster(t)
	namespace := newNamespace(t, c)
	s := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
	path := fmt.Sprintf(leasesPath, namespace)
	mustCAS(t, s, "a", nil, []byte("1"))
	for _, name := range []string{"firn", "other", "firn.b.leader-", "firn--4x", "firn-a"} {
		c.Do("POST", path, `{"metadata":{"name":"`+name+`"}}`)
	}
	var keys []string
	if err := s.List(t.Context(), "", func(key string, _ []byte) bool { keys = append(keys, key); return true }); err != nil || !slices.Equal(keys, []string{"a"}) {
		t.Errorf("List yields %q, %v, want a", keys, err)
	}
	c.Must("POST", path, `{"metadata":{"name":"firn.b"}}`)
	if v, err := s.Get(t.Context(), "b"); !errors.Is(err, grant.ErrDamaged) || !strings.Contains(err.Error(), "lease firn.b in namespace "+namespace) {
		t.Errorf("Get of a Lease without a record = %q, %v, want ErrDamaged that names it", v, err)
	}
	if all, err := s.GetMany(t.Context(), []string{"a", "b"}); err != nil || string(all[0]) != "1" || !strings.Contains(string(all[1]), "restore the annotation") {
		t.Errorf("GetMany = %q, %v, want 1 and what is wrong with b", all, err)
	}
	if ok, err := s.CAS(t.Context(), "b", nil, []byte("1")); ok || err != nil {
		t.Errorf("CAS from absent of a Lease without a record = %v, %v, want false", ok, err)
	}
	if ok, err := s.CAS(t.Context(), "b", []byte("1"), []byte("2")); ok || !errors.Is(err, grant.ErrNotSent) || !errors.Is(err, grant.ErrDamaged) {
		t.Errorf("CAS of a Lease without a record = %v, %v, want ErrNotSent and ErrDamaged", ok, err)
	}
	shown := make(map[string]string)
	err := s.List(t.Context(), "", func(key string, value []byte) bool { shown[key] = string(value); return true })
	if err != nil || len(shown) != 2 || shown["a"] != "1" || !strings.Contains(shown["b"], "lease firn.b in namespace "+namespace) {
		t.Errorf("List beside a Lease without a record yields %q, %v, want a, and what is wrong with b", shown, err)
	} // A key that is hidden behind a hash is not left out.
	c.Must("POST", path, `{"metadata":{"name":"firn--9abc"}}`)
	if err := s.List(t.Context(), "", func(string, []byte) bool { return true }); !errors.Is(err, grant.ErrDamaged) || !strings.Contains(err.Error(), "firn--9abc") {
		t.Errorf("List with a hash that is not of the key beside it = %v, want ErrDamaged", err)
	}
}
