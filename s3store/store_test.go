package s3store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/storetest"
	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
	"github.com/firnid/firn/internal/test/s3test"
	"github.com/firnid/firn/sequencer"
)

func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": s3test.Access, "AWS_SECRET_ACCESS_KEY": s3test.Secret, "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		_ = os.Setenv(name, value)
	}
	shared.Main(m)
}

// shared is a gateway for all tests that do not need their own.
var shared proc.Shared[*s3test.Gateway]

func sharedGateway(t testing.TB) *s3test.Gateway {
	t.Helper()
	return shared.Get(t, func(t testing.TB) *s3test.Gateway { return s3test.Start(t, t.TempDir()) })
}

var prefixes atomic.Int64

// options returns options for an unused prefix of a server.
func options(url string) Options {
	return Options{
		Bucket: "ids", Prefix: fmt.Sprintf("test/%d", prefixes.Add(1)), Endpoint: url, PathStyle: true, Timeout: must.Patience,
	}
}

// open opens a store, and closes it at the end of the test.
func open(t testing.TB, o Options) *store {
	t.Helper()
	s := must.Get(Open(t.Context(), &o))(t)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return s.(*store)
}

// unprobed returns a store whose server counts as fit.
func unprobed(t testing.TB, o Options) *store {
	t.Helper()
	s := must.Get(newStore(t.Context(), &o))(t)
	t.Cleanup(func() { must.Do(t, s.Close()) })
	return s
}

func testStore(t *testing.T, url string, opaque bool) {
	again := func(t *testing.T, o Options) grant.Store {
		s := unprobed(t, o)
		s.opaque.Store(opaque)
		return s
	}
	storetest.Run(t, func(t *testing.T) grant.Store { return again(t, options(url)) },
		func(t *testing.T, first grant.Store) grant.Store {
			o := options(url)
			o.Prefix = first.(*store).prefix
			return again(t, o)
		})
}

func TestStore(t *testing.T) { testStore(t, "http://"+sharedGateway(t).Address, false) }

func TestStoreOnFake(t *testing.T) {
	for _, opaque := range []bool{false, true} {
		t.Run(fmt.Sprintf("opaque %v", opaque), func(t *testing.T) {
			if opaque && os.Getenv("FIRN_ALL") == "" {
				t.Skip("it takes long: make test-all runs it, or FIRN_ALL=1")
			}
			testStore(t, newFake(t, faults{opaqueTags: opaque}).URL, opaque)
		})
	}
}

func TestObjectOf(t *testing.T) {
	for _, c := range []struct{ key, want string }{
		{"a", "a"},
		{"v1/orders/n/00042", "v1~orders~n~00042"},
		{strings.Repeat("a", 199), strings.Repeat("a", 199)},
		{strings.Repeat("a", 200), strings.Repeat("a", 199) + "!/a"},
		{strings.Repeat("a", 198) + "/b", strings.Repeat("a", 198) + "~!/b"},
	} {
		if got := objectOf(c.key); got != c.want {
			t.Errorf("objectOf(%q) = %q, want %q", c.key, got, c.want)
		}
	}
	// Keys of every length, and all their prefixes.
	var key string
	for i := 0; len(key) < 256; i++ {
		key += string("abcdefgh/"[min(i%9, 8)])
		if key[len(key)-1] == '/' {
			continue
		}
		object := objectOf(key)
		if back, ok := keyOf(object); !ok || back != key {
			t.Errorf("keyOf(%q) = %q, %v, want %q", object, back, ok, key)
		}
		for n := range key {
			if !strings.HasPrefix(object, objectOf(key[:n])) {
				t.Errorf("objectOf(%q) does not begin with objectOf(%q)", key, key[:n])
			}
			if strings.HasPrefix(object, objectOf(key[:n])+"/") {
				t.Errorf("objectOf(%q) is below objectOf(%q), which is an object too", key, key[:n])
			}
		}
		for part := range strings.SplitSeq(object, "/") {
			if len(part) > maxPart {
				t.Errorf("objectOf(%q) has a part of %d bytes", key, len(part))
			}
		}
	}
	for _, object := range []string{"", "a~", "~a", "a!/b", "a/b", strings.Repeat("a", 200)} {
		if key, ok := keyOf(object); ok {
			t.Errorf("keyOf(%q) = %q, want none", object, key)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string // "" means valid
	}{
		{Options{Bucket: "ids", Prefix: "/firn/"}, ""},
		{Options{Bucket: "ids", Endpoint: "https://s3.example.com/"}, ""},
		{Options{}, "not the name of a bucket"},
		{Options{Bucket: "Ids"}, "not the name of a bucket"},
		{Options{Bucket: "ids--use1-az4--x-s3"}, "directory bucket"},
		{Options{Bucket: "abc.mrap"}, "access point"},
		{Options{Bucket: "ids", Prefix: "a//b"}, "prefix"},
		{Options{Bucket: "ids", Prefix: "../a"}, "prefix"},
		{Options{Bucket: "ids", Endpoint: "s3.example.com"}, "is not a URL"},
		{Options{Bucket: "ids", Endpoint: "https://key:hunter2@s3.example.com"}, "is not a URL"},
		{Options{Bucket: "ids", Endpoint: "https://key:hunter 2@s3.example.com"}, "is not a URL"},
		{Options{Bucket: "ids", Endpoint: "key:hunter2@s3.example.com"}, "is not a URL"},
		{Options{Bucket: "ids", Endpoint: "https://key:hunter2"}, "is not a URL"},
		{Options{Bucket: "ids", Endpoint: "https://s3.example.com?secret=hunter2"}, "endpoint https://s3.example.com is not a URL"},
		{Options{Bucket: "ids", Endpoint: "https://s3.example.com#hunter2"}, "is not a URL"},
		{Options{Bucket: "abc--use1-az4--xa-s3"}, "access point"},
		{Options{Bucket: "ids", Prefix: "firn/keys"}, "prefix"},
		{Options{Bucket: "ids", Prefix: "probe"}, "prefix"},
		{Options{Bucket: "ids", Prefix: "firn/identity/a"}, "prefix"},
		{Options{Bucket: "ids", Prefix: "keys-of/probes"}, ""},
		{Options{Bucket: "ids", Timeout: -1}, "Timeout"},
	} {
		err := c.o.Check()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, grant.ErrOptions) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Check of %+v = %v, want %q", c.o, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("Check of %+v = %v, which has a secret", c.o, err)
		}
	}
	for prefix, want := range map[string]string{"": "firn/", "/": "firn/", "/a/b/": "a/b/"} {
		s := must.Get(newStore(t.Context(), &Options{Bucket: "ids", Prefix: prefix, Endpoint: "http://127.0.0.1:1"}))(t)
		if s.prefix != want {
			t.Errorf("prefix %q: objects begin with %q, want %q", prefix, s.prefix, want)
		}
		_ = s.Close()
	}
	if _, err := Open(t.Context(), nil); !errors.Is(err, grant.ErrOptions) {
		t.Errorf("Open without Options: %v", err)
	}
}

// TestConfiguredEndpoint has an endpoint that only the AWS configuration has:
// the store would not know what it probes.
func TestConfiguredEndpoint(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "config")
	must.Do(t, os.WriteFile(profile, []byte("[default]\nendpoint_url = http://127.0.0.1:1\n"), 0o600))
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1", "AWS_CONFIG_FILE": profile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			o := Options{Bucket: "ids", Region: "us-east-1"}
			_, err := Open(t.Context(), &o)
			calls.Error(t, "Open", err, grant.ErrOptions, "endpoint=URL")
			open(t, options(newFake(t, faults{}).URL))
			t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
			s := must.Get(newStore(t.Context(), &o))(t)
			must.Do(t, s.Close())
		})
	}
}

// TestTigris checks that each request to Tigris asks for strong consistency.
func TestTigris(t *testing.T) {
	var methods sync.Map
	f := newFake(t, faults{before: func(_ http.ResponseWriter, q *http.Request) bool {
		methods.Store(q.Method+" "+q.URL.Query().Get("list-type"), true)
		if q.Header.Get("X-Tigris-Consistent") != "true" {
			t.Errorf("%s %s has no X-Tigris-Consistent", q.Method, q.URL)
		}
		return false
	}})
	s := unprobed(t, options("http://t3.storage.dev"))
	s.transport.Proxy = nil
	s.transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, f.Listener.Addr().String())
	}
	must.Do(t, s.examine(t.Context()))
	for _, method := range []string{"GET ", "GET 2", "PUT ", "DELETE "} {
		if _, ok := methods.Load(method); !ok {
			t.Errorf("the probe makes no request %q", method)
		}
	}
}

// TestIdentity checks that a bucket that was emptied is another store, and that
// an endpoint is not part of what a store is.
func TestIdentity(t *testing.T) {
	f := newFake(t, faults{})
	o := options(f.URL)
	s := open(t, o)
	one, _, err := s.Lineage(t.Context())
	must.Do(t, err)
	o.Endpoint = strings.Replace(f.URL, "127.0.0.1", "localhost", 1)
	if same, _, err := open(t, o).Lineage(t.Context()); err != nil || same != one {
		t.Errorf("Lineage at another endpoint = %q, %v, want %q", same, err, one)
	}
	f.mu.Lock()
	clear(f.objects)
	f.mu.Unlock()
	if other, _, err := s.Lineage(t.Context()); err != nil || other == one {
		t.Errorf("Lineage after the bucket was emptied = %q, %v, want another than %q", other, err, one)
	}
}

// TestRoundTrips has a server that takes 50 ms to answer, of a clock that only
// waits move, so that it counts round trips that follow each other.
func TestRoundTrips(t *testing.T) {
	const trip = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int64
		f := unserved(t, faults{})
		b := inBubble(func(w http.ResponseWriter, q *http.Request) {
			requests.Add(1)
			time.Sleep(trip)
			f.ServeHTTP(w, q)
		})
		defer b.end()
		s := b.store(t)
		defer s.Close()
		var q *sequencer.Sequencer
		o := &sequencer.Options{Layout: firn.MustParseLayout("default,epoch=1999-01-01T00:00:00Z")}
		open := func() (err error) {
			q, err = sequencer.Open(t.Context(), s, "s", o)
			return err
		}
		for _, c := range []struct {
			what  string
			trips int
			do    func() error
		}{
			{"to probe the server", 90, func() error { return s.examine(t.Context()) }},
			{"to create a sequencer and acquire a node ID", 11, open},
			{"to give a node ID back", 1, func() error { return q.Close(t.Context()) }},
			{"to wait", 40, func() error { time.Sleep(2 * time.Second); return nil }},
			{"to open a store and acquire a node ID", 8, func() error {
				if known, err := s.recall(t.Context()); err != nil || !known {
					return fmt.Errorf("the result of the probe is kept: %v, %w", known, err)
				}
				return open()
			}},
			{"to wait", 40, func() error { time.Sleep(2 * time.Second); return nil }},
			{"to give it back", 2, func() error { return q.Close(t.Context()) }},
		} {
			begin, before := time.Now(), requests.Load()
			must.Do(t, c.do())
			took := time.Since(begin).Round(time.Millisecond)
			t.Logf("report: %s takes %d requests in %v", c.what, requests.Load()-before, took)
			if trips := int(took / trip); trips > c.trips {
				t.Errorf("%s takes %d round trips one after the other, want up to %d", c.what, trips, c.trips)
			}
		}
	})
}

// TestReads has a server that cannot answer reads for a moment, or ends an
// answer early, whose ETag does not show it.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := unserved(t, faults{opaqueTags: true})
		var failures []func(w http.ResponseWriter) // to come
		slow := func(w http.ResponseWriter) { fail(w, http.StatusServiceUnavailable, "SlowDown") }
		part := func(w http.ResponseWriter) {
			w.Header().Set("ETag", `"1-a"`)
			w.Header().Set("Content-Length", "2")
			_, _ = w.Write([]byte("1"))
		}
		b := inBubble(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodGet && len(failures) > 0 {
				failures[0](w)
				failures = failures[1:]
				return
			}
			f.ServeHTTP(w, q)
		})
		defer b.end()
		s := b.store(t)
		defer s.Close()
		s.opaque.Store(true)
		calls.CAS(t, s, "a", "", "12")
		failures = append(failures, slow, part, slow)
		calls.Get(t, s, "a", "12")
		failures = append(failures, slow, slow, slow)
		if _, values := calls.List(t, s, ""); values["a"] != "12" {
			t.Errorf("List yields %q, want a with 12", values)
		}
	})
}

// TestInOrder has a server that answers a read of the second key, then applies
// writes of the second and the first, and then answers a read of the first.
func TestInOrder(t *testing.T) {
	var other *store
	var once sync.Once
	second := make(chan struct{})
	f := newFake(t, faults{
		after: func(_ http.ResponseWriter, q *http.Request) bool {
			if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/second") {
				once.Do(func() { close(second) })
			}
			return false
		},
		before: func(_ http.ResponseWriter, q *http.Request) bool {
			if q.Method == http.MethodGet && strings.HasSuffix(q.URL.Path, "/first") {
				<-second
				calls.CAS(t, other, "second", "0", "1")
				calls.CAS(t, other, "first", "0", "1")
			}
			return false
		},
	})
	o := options(f.URL)
	s := unprobed(t, o)
	other = unprobed(t, o)
	calls.Fill(t, s, []string{"first", "second"})
	got, err := s.GetMany(t.Context(), []string{"first", "second"})
	if err != nil || string(got[0])+string(got[1]) != "11" {
		t.Errorf("GetMany = %q, %v, want 1 and 1", got, err)
	}
}
