//go:build unix

package kubestore

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
)

// TestWentBack: a cluster whose etcd was restored has the same identity and an
// earlier resourceVersion, which Check reports.
func TestWentBack(t *testing.T) {
	_, p, _, s, _ := proxied(t)
	before, _, err := s.Lineage(t.Context())
	must.Do(t, err)
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
	_, _, err = s.Lineage(t.Context())
	must.Do(t, err)
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
	var keys []string
	for i := range page + 30 {
		keys = append(keys, fmt.Sprintf("v1/K/%05d", i))
	}
	calls.Fill(t, s, keys)
	for _, key := range []string{"k/00000", "k/00250", "k/00500", "k/09999"} {
		calls.CAS(t, other, key, "", "1")
	}
	// A label that was changed by hand hides nothing.
	name, _ := nameOf("firn", "v1/K/00007")
	if code, text := c.Patch(fmt.Sprintf(leasesPath, namespace)+name, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm","firn/prefix":null}}}`); code != http.StatusOK {
		t.Fatalf("patch: %d %s", code, text)
	}
	list := func() {
		t.Helper()
		if got, _ := calls.List(t, s, "v1/"); !slices.Equal(got, keys) {
			t.Errorf("List yields %d keys, sorted %v, want %d, sorted", len(got), slices.IsSorted(got), len(keys))
		}
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
	record := func(state string, until int64) string {
		return fmt.Sprintf(`{"v":3,"nonce":"b7e2905d1c4f86a3370e1d92c85fa6b4","owner":"d41f0a6738be52c99e07ab135c64f820",`+
			`"until":%d,"wall":1795132800000,"state":%q,"host":"ids-7f9c"}`, until, state)
	}
	last := ""
	for _, tt := range []struct{ value, want string }{
		{record("held", 1795132860000), `"holderIdentity":"ids-7f9c/d41f0a67","leaseDurationSeconds":60,"renewTime":"2026-11-20T00:00:00.000000Z"`},
		{record("closing", 1795132800001), `"leaseDurationSeconds":1,"renewTime"`},
		{record("held", 1795132700000), `"leaseDurationSeconds":1,"renewTime"`},
		{record("held", 4611686018427), `"leaseDurationSeconds":2147483647,"renewTime"`},
		{record("free", 1795132800000), `"spec":{}`},
		{`{"v":3,"spans":[]}`, `"spec":{}`},
		{"not a record", `"spec":{}`},
		{"\xff\x00", `"firn/record-base64":"/wA="`},
	} {
		calls.CAS(t, s, "v1/Orders/n/0042", last, tt.value)
		last = tt.value
		name, _ := nameOf("prod/eu", "v1/Orders/n/0042")
		text := string(c.Must("GET", fmt.Sprintf(leasesPath, namespace)+name, ""))
		for _, want := range []string{tt.want, `"firn/key":"v1/Orders/n/0042"`, `"app.kubernetes.io/managed-by":"firn"`, `"firn/prefix":"prod.eu"`, `"firn/sequencer":"Orders"`} {
			if !strings.Contains(text, want) {
				t.Errorf("the Lease of %q does not have %s: %s", tt.value, want, text)
			}
		}
		calls.Get(t, s, "v1/Orders/n/0042", tt.value)
	}
	calls.CAS(t, s, "v1/a:b/config", "", `{"state":"attached"}`) // not a valid label value
	calls.CAS(t, s, "v1/"+strings.Repeat("A", 128)+"/n/0001", "", record("held", 1795132860000))
}

// TestForeignLeases: Leases of others are ignored, and one that lost its record
// is damaged, not absent.
func TestForeignLeases(t *testing.T) {
	c := sharedCluster(t)
	namespace := newNamespace(t, c)
	s := open(t, Options{Kubeconfig: c.Kubeconfig("", namespace, "")})
	path := fmt.Sprintf(leasesPath, namespace)
	calls.CAS(t, s, "a", "", "1")
	for _, name := range []string{"firn", "other", "firn.b.leader-", "firn--4x", "firn-a"} {
		c.Do("POST", path, `{"metadata":{"name":"`+name+`"}}`)
	}
	c.Must("POST", path, `{"metadata":{"name":"firn.b"}}`)
	calls.Damaged(t, s, "b", "a", "lease firn.b in namespace "+namespace, "restore the annotation")
	calls.Refused(t, s, "b", "", "1")
	calls.NotSent(t, s, "b", "1", "2", grant.ErrDamaged)
	// A key that is hidden behind a hash is not left out.
	c.Must("POST", path, `{"metadata":{"name":"firn--9abc"}}`)
	err := s.List(t.Context(), "", func(string, []byte) bool { return true })
	calls.Error(t, "List with a hash that is not of the key beside it", err, grant.ErrDamaged, "firn--9abc")
}
