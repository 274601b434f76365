package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
	"github.com/firnid/firn/internal/test/faultstore"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/access/tlsconf"
	"github.com/firnid/firn/server/internal/operate/members"
	"github.com/firnid/firn/server/internal/protocol/httpapi"
	"github.com/firnid/firn/server/internal/protocol/listen"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/service/forwarding"
	"github.com/firnid/firn/server/internal/test/nettest"
	"github.com/firnid/firn/server/internal/test/servicetest"
)

// find is the only finding of a check whose text has some words.
func find(t *testing.T, found []Finding, check, words string) Finding {
	t.Helper()
	for _, f := range found {
		if f.Check == check && strings.Contains(f.Text, words) {
			if (f.Level == Fix) != (f.Fix != "") {
				t.Errorf("finding %+v: it must have a remedy if, and only if, something needs fixing", f)
			}
			return f
		}
	}
	t.Fatalf("no finding of %s has %q:\n%v", check, words, found)
	return Finding{}
}

func want(t *testing.T, found []Finding, check, words string, level Level) {
	t.Helper()
	if f := find(t, found, check, words); f.Level != level {
		t.Errorf("the finding %q of %s is %s, want %s", f.Text, check, f.Level, level)
	}
}

// An unsafeStore is in danger.
type unsafeStore struct{ faultstore.Timed }

func (unsafeStore) Dangers(context.Context) ([]string, error) { return []string{"fsync is off"}, nil }

// announce writes a server into the store.
func announce(t *testing.T, s grant.Store, n int, m members.Server) {
	t.Helper()
	value := must.Get(json.Marshal(m))(t)
	if ok, err := s.CAS(t.Context(), fmt.Sprintf("members/v1/%04d", n), nil, value); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

func TestStore(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	for _, test := range []struct {
		name     string
		offset   time.Duration // of the store's clock
		versions []string
		seen     time.Duration // of the servers' records
		words    map[string]Level
	}{
		{"well", 0, []string{"v1.2.0", "v1.3.9"}, -time.Second, map[string]Level{"clock:agree": OK, "members:v1.3.9": OK, "store:answers in": OK}},
		{"alone", 0, nil, 0, map[string]Level{"members:no server": OK}},
		{"ahead", -5 * time.Second, nil, 0, map[string]Level{"clock:4.999s ahead": Fix}},
		{"behind", 5 * time.Second, nil, 0, map[string]Level{"clock:5s behind": Fix}},
		{"two minors", 0, []string{"v1.2.0", "v1.4.0"}, 0, map[string]Level{"members:v1.4.0": Fix}},
		{"two majors", 0, []string{"v1.2.0", "v0.2.0"}, 0, map[string]Level{"members:v0.2.0": Fix}},
		{"this one is old", 0, []string{"v1.5.0"}, 0, map[string]Level{"members:host-0 (v1.5.0); this firn is v1.3.0": Fix}},
		{"no version", 0, []string{"devel"}, 0, map[string]Level{"members:devel": OK}},
		{"a server's clock", 0, []string{"v1.3.0"}, 3 * time.Second, map[string]Level{"clock:3s ahead of this one": Fix}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := unsafeStore{faultstore.Timed{Store: new(memstore.Store), Now: func() time.Time { return now.Add(test.offset) }}}
			for i, v := range test.versions {
				announce(t, s, i, members.Server{Host: fmt.Sprint("host-", i), Version: v, Seen: now.Add(test.seen), Until: now.Add(time.Minute)})
			}
			found := Run(t.Context(), Config{Store: s, Version: "v1.3.0", Now: clock})
			for words, level := range test.words {
				check, text, _ := strings.Cut(words, ":")
				want(t, found, check, text, level)
			}
			want(t, found, "store", "fsync is off", Fix)
		})
	}
}

// TestRecords: records that cannot be read are named, with what to do.
func TestRecords(t *testing.T) {
	s := new(memstore.Store)
	must.Get(grant.Create(t.Context(), s, "orders", grant.DefaultConfig(s, firn.Default(), nil), nil))(t)
	want(t, Run(t.Context(), Config{Store: s}), "records", "1 records", OK)
	for key, value := range map[string]string{"v1/orders/n/0007": "{", "v1/users/config": "{", "v1/items/config": `{"v":99}`} {
		faultstore.Put(t, s, key, value)
	}
	found := Run(t.Context(), Config{Store: s})
	for words, remedy := range map[string]string{"node ID 7 of sequencer orders": "do not delete", "v1/users/config": "do not delete", "v1/items/config": "newer firn"} {
		if f := find(t, found, "records", words); f.Level != Fix || !strings.Contains(f.Fix, remedy) {
			t.Errorf("%s: %+v, want %q", words, f, remedy)
		}
	}
}

// TestStoppedSequencers: what an operator has stopped is named, with who did
// it, and so are a layout that ends and what servers do not serve.
func TestStoppedSequencers(t *testing.T) {
	s, now := new(memstore.Store), time.Now()
	ctx := grant.WithOperator(t.Context(), "ops")
	create := func(name string) {
		t.Helper()
		must.Get(grant.Create(ctx, s, name, grant.DefaultConfig(s, firn.Default(), nil), nil))(t)
	}
	check := func(_ grant.Info, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"orders", "users", "gone", "moved"} {
		create(name)
	}
	check(grant.Detach(ctx, s, "users", nil))
	check(grant.Destroy(ctx, s, "gone", nil))
	check(grant.Move(ctx, grant.Place{Store: s, URL: "dir:/a"}, grant.Place{Store: new(memstore.Store), URL: "dir:/b"}, "moved", nil))
	announce(t, s, 0, members.Server{Host: "ids-1", Seen: now, Until: now.Add(time.Hour), Lacks: []members.Lack{{Sequencer: "orders", Problem: "store-rolled-back"}}})
	found := Run(t.Context(), Config{Store: s, Now: func() time.Time { return now }})
	want(t, found, "records", "sequencer users is detached: no server gives its IDs (last change: detach by ops, ", Fix)
	want(t, found, "records", "sequencer moved was moved to dir:/b (last change: move by ops, ", OK)
	want(t, found, "members", "server ids-1 gives no IDs of orders: store-rolled-back", Fix)
	for _, f := range found {
		if strings.Contains(f.Text, "gone") || strings.Contains(f.Text, "has no IDs after") {
			t.Errorf("%+v", f)
		}
	}
	late := firn.Default().Last().Add(-300 * 24 * time.Hour)
	want(t, Run(t.Context(), Config{Store: s, Now: func() time.Time { return late }}), "records", "sequencer orders has no IDs after 2095-09-07", Fix)
}

func TestNoStore(t *testing.T) {
	found := Run(t.Context(), Config{StoreError: errors.New("etcd is down"), StoreHint: "start it"})
	if f := find(t, found, "store", "etcd is down"); f.Level != Fix || f.Fix != "start it" {
		t.Errorf("a store that is down is %+v", f)
	}
	found = Run(t.Context(), Config{Directory: filepath.Join(t.TempDir(), "not", "yet"), Missing: true})
	want(t, found, "store", "has no store yet", OK)
	want(t, found, "file system", "MiB free", OK)
	log := filepath.Join(t.TempDir(), "issued.log")
	want(t, Run(t.Context(), Config{IssueLog: log}), "file system", filepath.Dir(log)+" has ", OK)
}

// TestNoOtherStore: another store that is down is a finding beside the others.
func TestNoOtherStore(t *testing.T) {
	found := Run(t.Context(), Config{Store: new(memstore.Store), OtherError: errors.New("etcd is down"), OtherHint: "start it"})
	if f := find(t, found, "other store", "etcd is down"); f.Level != Fix || f.Fix != "start it" {
		t.Errorf("another store that is down is %+v", f)
	}
	want(t, found, "store", "the store answers in ", OK)
}

func TestAddress(t *testing.T) {
	ready := http.StatusOK
	firn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "x")
		w.WriteHeader(ready)
		if ready != http.StatusOK {
			fmt.Fprint(w, `{"detail":"sequencer orders was fenced"}`)
		}
	}))
	defer firn.Close()
	other := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { // it hangs up
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer other.Close()
	address := firn.Listener.Addr().String()
	socket := filepath.Join(t.TempDir(), "socket")
	found := Run(t.Context(), Config{Listen: []string{address, other.Addr().String(), "127.0.0.1:0", "unix:" + socket}})
	want(t, found, "address", "a ready server listens on "+address, OK)
	want(t, found, "address", "another program listens on "+other.Addr().String(), Fix)
	want(t, found, "address", "127.0.0.1:0 is free", OK)
	want(t, found, "address", socket+" is free", OK)
	ready = http.StatusServiceUnavailable
	want(t, Run(t.Context(), Config{Listen: []string{address}}), "address", "not ready listens on "+address+": sequencer orders was fenced", Fix)
}

// TestForwards: each server of --forward-to is asked as the server would ask
// it, and what would fail there is found.
func TestForwards(t *testing.T) {
	store := new(memstore.Store)
	must.Get(grant.Create(t.Context(), store, "orders", servicetest.Config(firn.Default()), nil))(t)
	cluster := servicetest.NewStoreBackend(t, store, service.StoreBackendConfig{})
	handler := httpapi.NewHandler(httpapi.Config{Front: service.Front{Backend: cluster}, Owner: cluster.Owner})
	for words, answer := range map[string]http.HandlerFunc{
		"gives IDs of this store": handler.ServeHTTP,
		"cannot help: status 401: unauthorized no token": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			fmt.Fprint(w, `{"type":"urn:firn:problem:unauthorized","detail":"no token"}`)
		},
		"has no IDs now: status 503": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			fmt.Fprint(w, `{"type":"urn:firn:problem:nodes-exhausted"}`)
		},
		"connection refused": nil,
	} {
		c := Config{Store: store, Forward: forwarding.Config{URLs: []string{"http://127.0.0.1:1"}, Token: func() string { return "secret" }}}
		if answer != nil {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Firn-Forwarded") == "" || r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/v1/sequencers/orders/next" {
					t.Errorf("the request is %s %v", r.URL, r.Header)
				}
				answer(w, r)
			}))
			defer s.Close()
			c.Forward.URLs = []string{s.URL}
		}
		level := map[string]Level{"gives IDs of this store": OK, "has no IDs now: status 503": Unknown}[words]
		want(t, Run(t.Context(), c), "forward", words, cmp.Or(level, Fix))
	}
}

func TestLimits(t *testing.T) {
	if _, err := listen.MaxOpenFiles(); err != nil {
		t.Skipf("the limit is not known here: %v", err)
	}
	want(t, Run(t.Context(), Config{Connections: 1}), "limits", "may open", OK)
	f := find(t, Run(t.Context(), Config{Connections: math.MaxInt32, Listen: []string{"a:0", "b:0"}}), "limits", "connections")
	if f.Level != Fix || !strings.Contains(f.Fix, fmt.Sprint(listen.FilesFor(2, math.MaxInt32))) {
		t.Errorf("too low a limit is %+v, want the number that is needed", f)
	}
}

// TestCertificates: doctor finds what the server warns of, with the file.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	nettest.Certificates(t, dir) // valid for less than a day
	path := func(name string) string { return filepath.Join(dir, name) }
	var warned []string
	loader := must.Get(tlsconf.Load(tlsconf.Files{Cert: path("server.crt"), Key: path("server.key"), ClientCA: path("ca.crt")},
		func(text string) { warned = append(warned, text) }))(t)
	for after, words := range map[time.Duration]string{
		0: "expires soon, at ", 48 * time.Hour: "expired at ", -48 * time.Hour: "is not valid before ",
	} {
		found := Run(t.Context(), Config{TLS: loader, Now: func() time.Time { return time.Now().Add(after) }})
		want(t, found, "TLS", path("server.crt")+`: the certificate of "CN=server.example" `+words, Fix)
		if after >= 0 { // that authority is valid from the year 0
			want(t, found, "TLS", path("ca.crt")+`: the certificate of "CN=CA" `+words, Fix)
		}
		for _, text := range warned {
			if after == 0 {
				want(t, found, "TLS", text, Fix)
			}
		}
	}
	if len(warned) != 2 {
		t.Errorf("the server warns of %q", warned)
	}
}

// TestUnreadOtherStore: a sequencer that one of two stores cannot read is not
// said to be apart.
func TestUnreadOtherStore(t *testing.T) {
	one, damaged := new(memstore.Store), new(memstore.Store)
	must.Get(grant.Create(t.Context(), one, "orders", grant.DefaultConfig(one, firn.Default(), nil), nil))(t)
	faultstore.Put(t, damaged, "v1/orders/config", "{")
	want(t, Run(t.Context(), Config{Store: one, Other: damaged}), "other store", "sequencer orders of the other store is not compared: ", Unknown)
	want(t, Run(t.Context(), Config{Store: damaged, Other: one}), "other store", "sequencer orders of this store is not compared: ", Unknown)
}

// TestHandedOver: node IDs of another store's range were not used here, or all
// clocks have passed that.
func TestHandedOver(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		node         int
		until, floor time.Duration // from now; a floor of 0 is none, and one of -1 that this store was detached and the other has all
		level        Level
		words        string
	}{
		{1, time.Hour, 0, OK, "1 sequencers are in both stores, and no node ID is in both"}, // its own
		{2, -10 * time.Second, 0, OK, "no node ID is in both"},
		{2, -9 * time.Second, 0, Fix, "node IDs 2..3 of orders may have been used in this store up to "},
		{2, time.Second, 0, Fix, "node IDs 2..3 of orders may have been used in this store up to "},
		{2, -9 * time.Second, time.Second, OK, "no node ID is in both"},
		{5, time.Hour, 0, OK, "no node ID is in both"}, // a third store's
		{5, -10 * time.Second, -1, OK, "no node ID is in both"},
		{5, time.Second, -1, Fix, "node IDs all of orders may have been used in this store up to "},
		{2, 1 << 62, 0, Fix, "node IDs 2..3 of orders may have been used in this store at any time"}, // it is damaged
		{1, 1 << 62, 0, OK, "no node ID is in both"},
	} {
		for _, exchanged := range []bool{false, true} {
			stores := [2]*memstore.Store{new(memstore.Store), new(memstore.Store)}
			for i, s := range stores {
				c := grant.DefaultConfig(s, firn.MustParseLayout("default"), nil)
				c.Nodes = &grant.NodeRange{Lo: 2 * uint64(i), Hi: 2*uint64(i) + 1}
				o := new(grant.CreateOptions)
				switch {
				case row.floor == -1:
					c.Nodes = nil
				case i == 1 && row.floor != 0:
					o.Floor = now.Add(row.floor)
				}
				must.Get(grant.Create(t.Context(), s, "orders", c, o))(t)
				if i == 0 && row.floor == -1 {
					must.Get(grant.Detach(t.Context(), s, "orders", nil))(t)
				}
			}
			record := fmt.Sprintf(`{"v":3,"nonce":"n","owner":"o","until":%d,"wall":%[1]d,"state":"free","host":"h"}`, now.Add(row.until).UnixMilli())
			faultstore.Put(t, stores[0], fmt.Sprintf("v1/orders/n/%04d", row.node), record)
			c := Config{Store: stores[0], Other: stores[1], Now: func() time.Time { return now }}
			words := row.words
			if exchanged {
				c.Store, c.Other = c.Other, c.Store
				words = strings.Replace(words, "in this store", "in the other store", 1)
			}
			want(t, Run(t.Context(), c), "other store", words, row.level)
		}
	}
}

// TestNewerNeighbour: a sequencer with a newer record hides nothing of those
// after it.
func TestNewerNeighbour(t *testing.T) {
	stores := [2]*memstore.Store{new(memstore.Store), new(memstore.Store)}
	for i, s := range stores {
		c := grant.DefaultConfig(s, firn.Default(), nil)
		c.Nodes = &grant.NodeRange{Lo: 2 * uint64(i), Hi: 2*uint64(i) + 1}
		for _, name := range []string{"aaa", "bbb"} {
			must.Get(grant.Create(t.Context(), s, name, c, nil))(t)
		}
	}
	faultstore.Put(t, stores[0], "v1/aaa/n/0000", `{"v":99}`)
	faultstore.Put(t, stores[0], "v1/bbb/n/0002", "{")
	found := Run(t.Context(), Config{Store: stores[0], Other: stores[1]})
	want(t, found, "other store", "sequencer aaa of this store is not compared: ", Unknown)
	want(t, found, "other store", "node IDs 2..3 of bbb may have been used in this store at any time", Fix)
}
