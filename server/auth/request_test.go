package auth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFromHeader(t *testing.T) {
	for _, test := range []struct {
		values []string
		token  string
		given  bool
	}{
		{nil, "", false},
		{[]string{"Bearer firn_a"}, "firn_a", true},
		{[]string{"bearer  firn_a "}, "firn_a", true},
		{[]string{"Bearer"}, "", true},
		{[]string{""}, "", true},
		{[]string{"Basic firn_a"}, "", true},
		{[]string{"Bearerfirn_a"}, "", true},
		{[]string{"Bearer firn_a", "Bearer firn_b"}, "", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = test.values
		if c := FromHeader(r.Header["Authorization"], nil); c.Token != test.token || c.Given != test.given {
			t.Errorf("FromHeader(%q) = %q, %t, want %q, %t", test.values, c.Token, c.Given, test.token, test.given)
		}
	}
}

func TestOrigins(t *testing.T) {
	o, err := NewOrigins("https://console.example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		method, site, origin string
		ok                   bool
	}{
		{"POST", "same-origin", "", true},
		{"POST", "none", "", true},
		{"POST", "cross-site", "", false},
		{"POST", "same-site", "", false},
		{"POST", "cross-site", "https://console.example.com", true},
		{"POST", "", "https://firn.example.com", true},
		{"POST", "", "https://elsewhere.example.com", false},
		{"POST", "", "null", false},
		{"POST", "", "", true}, // no browser
		{"DELETE", "cross-site", "", false},
		{"PUT", "same-site", "", false},
		{"GET", "same-origin", "", true},
		{"GET", "same-site", "", false}, // another port of this host
		{"GET", "cross-site", "", false},
		{"GET", "none", "", false},
		{"GET", "", "", false},
		{"HEAD", "", "", false},
	} {
		r := httptest.NewRequest(test.method, "https://firn.example.com/v1/sequencers/orders/next", nil)
		if test.site != "" {
			r.Header.Set("Sec-Fetch-Site", test.site)
		}
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		err := o.Check(r)
		if (err == nil) != test.ok || err != nil && !errors.Is(err, ErrCrossOrigin) {
			t.Errorf("%s, site %q, origin %q: %v, want ok %t", test.method, test.site, test.origin, err, test.ok)
		}
	}
	if _, err := NewOrigins("console.example.com", "https://a/b"); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("NewOrigins of two invalid origins: %v, want two faults", err)
	}
}
