//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A caller with a token sends one more header in an otherwise equal request.
func TestAuthorize(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Accept")+" "+r.Header.Get("Authorization"))
		w.Write([]byte("1"))
	}))
	defer server.Close()
	c, err := httpConn(t.Context(), strings.TrimPrefix(server.URL, "http://"), "/next", "text/plain", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.call(); err != nil {
			t.Fatal(err)
		}
		c.authorize("firn_x")
	}
	if want := []string{"POST /next text/plain ", "POST /next text/plain Bearer firn_x"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}

// The bare handler answers the requests that callers send to firn serve.
func TestBareHandler(t *testing.T) {
	server := httptest.NewServer(bareHandler())
	defer server.Close()
	c, err := httpConn(t.Context(), strings.TrimPrefix(server.URL, "http://"), "/v1/sequencers/bench/next", "application/json", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		if n, err := c.call(); n != 1 || err != nil {
			t.Errorf("call() = %d, %v, want 1", n, err)
		}
	}
}

func TestLettuceRates(t *testing.T) {
	all, err := lettuceRates("sync 2000 1000\nasync-100 90000 45000\nsync 4000 1000\nasync-100 60000 30000\n")
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string]samples{"sync": {a: []float64{2, 4}, b: []float64{1, 1}}, "async-100": {a: []float64{90, 60}, b: []float64{45, 30}}} {
		if got := all[mode]; !slices.Equal(got.a, want.a) || !slices.Equal(got.b, want.b) {
			t.Errorf("%s: %v, want %v", mode, got, want)
		}
	}
	for _, out := range []string{"sync 1\n", "sync 0 1\n", "other 1 1\n", "sync 1 NaN\n", "Exception in thread\n"} {
		if got, err := lettuceRates(out); err == nil {
			t.Errorf("lettuceRates(%q) = %v, want an error", out, got)
		}
	}
}
