package etcdstore

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/proc"
)

// clockOf returns a Store that supports only Time.
func clockOf(t *testing.T, endpoints ...string) *store {
	s := &store{endpoints: endpoints}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(s.cancel)
	return s
}

// memberAhead answers like a member of etcd whose clock is ahead by some time.
func memberAhead(t *testing.T, ahead time.Duration) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/version" {
			t.Errorf("%s %s, want GET /version", r.Method, r.URL)
		}
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTimeOfMembers: Time returns the median clock, so one member may have a
// wrong clock, and does not wait for one that is down.
func TestTimeOfMembers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, but does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	const year = 365 * 24 * time.Hour
	right, mute, dead := memberAhead(t, 0), "http://"+silent.Addr().String(), "http://"+proc.FreeAddress(t)
	another, ahead, behind := memberAhead(t, 0), memberAhead(t, year), memberAhead(t, -year)
	for _, tt := range []struct {
		name      string
		endpoints []string
		off       time.Duration // deviation of the result
	}{
		{"one", []string{right}, 0},
		{"one is ahead", []string{ahead, right, another}, 0},
		{"one is behind", []string{right, behind, another}, 0},
		{"one ahead, one behind", []string{ahead, right, behind}, 0},
		{"one does not answer", []string{mute, right, another}, 0},
		{"one is down", []string{dead, right, another}, 0},
		{"two are down", []string{dead, right, dead}, 0},
		{"all are ahead", []string{ahead, ahead, ahead}, year},
	} {
		for shift := range tt.endpoints { // the order does not matter
			endpoints := slices.Concat(tt.endpoints[shift:], tt.endpoints[:shift])
			before := time.Now()
			now, resolution, err := clockOf(t, endpoints...).Time(t.Context())
			after := time.Now()
			if err != nil || now.Add(resolution).Before(before.Add(tt.off)) || now.After(after.Add(tt.off)) || resolution != time.Second {
				t.Errorf("%s: Time = %v, %v, %v between %v and %v, want it to be %v ahead", tt.name, now, resolution, err, before, after, tt.off)
			}
			if now.Location() != time.UTC {
				t.Errorf("%s: Time is in %v, want UTC", tt.name, now.Location())
			}
		}
	}
}

// TestTimeIsAHint: an answer that does not come from etcd is an error that
// names the endpoint, and redirects are not followed.
func TestTimeIsAHint(t *testing.T) {
	serve := func(h http.HandlerFunc) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	elsewhere := serve(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	binary, err := net.Listen("tcp", "127.0.0.1:0") // answers, but not in HTTP
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = binary.Close() })
	go func() {
		for {
			c, err := binary.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("\x00\x00\x12\x04\x00\x00\x00\x00\x00"))
			_ = c.Close()
		}
	}()
	for name, tt := range map[string]struct{ endpoint, words string }{
		"redirect":   {serve(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }), "302 Found"},
		"other page": {serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }), "418"},
		"no date":    {serve(func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }), "Date"},
		"no time":    {serve(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "yesterday") }), "Date"},
		"no HTTP":    {"http://" + binary.Addr().String(), "malformed HTTP"},
		"dead":       {"http://" + proc.FreeAddress(t), "connection refused"},
	} {
		now, _, err := clockOf(t, tt.endpoint).Time(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), tt.endpoint) || !now.IsZero() {
			t.Errorf("%s: Time = %v, %v, want an error of %s with %q", name, now, err, tt.endpoint, tt.words)
		}
	}
}

// TestTimeOfEtcd: etcd returns its time at its client addresses, with and
// without TLS, unless it serves HTTP elsewhere; that is an error only for Time.
func TestTimeOfEtcd(t *testing.T) {
	read := func(e *etcd) (s *store, now time.Time, err error) {
		s = open(t, Options{Endpoints: []string{e.endpoint}, TLS: e.tls, Prefix: newPrefix()})
		now, _, err = s.Time(t.Context())
		return s, now, err
	}
	near := func(what string, now time.Time, err error) {
		t.Helper()
		if by := time.Since(now).Abs(); err != nil || by > time.Minute {
			t.Errorf("%s: Time = %v, %v, %v from this machine's clock, which is the same", what, now, err, by)
		}
	}
	_, now, err := read(sharedEtcd(t))
	near("plain", now, err)
	_, now, err = read(startEtcd(t, makeCertificates(t)))
	near("TLS with client certificates", now, err)

	s, now, err := read(startEtcd(t, nil, "--listen-client-http-urls", "http://"+proc.FreeAddress(t)))
	if err == nil {
		t.Errorf("gRPC alone: Time = %v, want an error", now)
	}
	t.Logf("gRPC alone: %v", err)
	if ok, err := s.CAS(t.Context(), "a", nil, []byte("1")); !ok || err != nil {
		t.Errorf("gRPC alone: CAS = %t, %v, want it applied", ok, err)
	}
	if _, ok := grant.Store(s).(grant.Clock); !ok {
		t.Error("it is not a grant.Clock")
	}
}
