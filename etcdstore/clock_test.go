package etcdstore

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/calls"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/internal/test/proc"
)

// clockOf returns a Store that supports only Time.
func clockOf(t *testing.T, endpoints ...string) *store {
	s := &store{endpoints: endpoints}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(s.cancel)
	return s
}

// serve serves HTTP until the end of the test, and returns the URL.
func serve(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// memberAhead answers like a member of etcd whose clock is ahead by some time.
func memberAhead(t *testing.T, ahead time.Duration) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/version" {
			t.Errorf("%s %s, want GET /version", r.Method, r.URL)
		}
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	})
}

// TestTimeOfMembers: Time returns the median clock, so one member may have a
// wrong clock, and does not wait for one that is down.
func TestTimeOfMembers(t *testing.T) {
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // accepts, but does not answer
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
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	binary := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // answers, but not in HTTP
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
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) }
	otherPage := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }
	noDate := func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }
	noTime := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "yesterday") }
	for name, tt := range map[string]struct{ endpoint, words string }{
		"redirect":   {serve(t, redirect), "302 Found"},
		"other page": {serve(t, otherPage), "418"},
		"no date":    {serve(t, noDate), "Date"},
		"no time":    {serve(t, noTime), "Date"},
		"no HTTP":    {"http://" + binary.Addr().String(), "malformed HTTP"},
		"dead":       {"http://" + proc.FreeAddress(t), "connection refused"},
	} {
		now, _, err := clockOf(t, tt.endpoint).Time(t.Context())
		calls.Error(t, "Time, "+name, err, tt.words, tt.endpoint)
		if !now.IsZero() {
			t.Errorf("%s: Time = %v, want no time", name, now)
		}
	}
}

// TestTimeOfEtcd: etcd returns its time at its client addresses, with and
// without TLS, unless it serves HTTP elsewhere; that is an error only for Time.
func TestTimeOfEtcd(t *testing.T) {
	opened := func(e *etcd) *store {
		return open(t, Options{Endpoints: []string{e.endpoint}, TLS: e.tls, Prefix: newPrefix()})
	}
	for what, e := range map[string]*etcd{
		"plain": sharedEtcd(t), "TLS with client certificates": startEtcd(t, makeCertificates(t)),
	} {
		now, _, err := opened(e).Time(t.Context())
		if by := time.Since(now).Abs(); err != nil || by > time.Minute {
			t.Errorf("%s: Time = %v, %v, %v from this machine's clock, which is the same", what, now, err, by)
		}
	}
	s := opened(startEtcd(t, nil, "--listen-client-http-urls", "http://"+proc.FreeAddress(t)))
	_, _, err := s.Time(t.Context())
	calls.Error(t, "Time of gRPC alone", err)
	calls.CAS(t, s, "a", "", "1")
}
