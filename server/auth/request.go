package auth

import (
	"errors"
	"net/http"
)

// Challenge is the WWW-Authenticate of an answer with status 401, as RFC 6750
// has it. It says that a token is wrong where one was given.
func Challenge(given bool) string {
	if given {
		return `Bearer realm="firn", error="invalid_token"`
	}
	return `Bearer realm="firn"`
}

// ErrCrossOrigin is that of a request that a page of another origin has made.
var ErrCrossOrigin = errors.New("the request comes from a page of another origin")

// Origins knows which pages a browser may send requests from that change
// something or take IDs, where a cookie says who asks. It must be made by
// NewOrigins, and is safe for use by many goroutines at once.
//
// A token in a header needs no such check: no page of another origin can set
// it.
type Origins struct {
	c *http.CrossOriginProtection
}

// NewOrigins makes an Origins that allows the server's own pages and those of
// the origins that are trusted, such as https://console.example.com.
func NewOrigins(trusted ...string) (*Origins, error) {
	o := &Origins{http.NewCrossOriginProtection()}
	var faults []error
	for _, t := range trusted {
		if err := o.c.AddTrustedOrigin(t); err != nil {
			faults = append(faults, err)
		}
	}
	return o, errors.Join(faults...)
}

// Check returns an error that is ErrCrossOrigin if the request may have been
// made by another origin's page. Call it for what changes something or takes
// IDs, and not for what only shows.
//
// The methods that http.CrossOriginProtection lets pass are checked too, as IDs
// can be taken with GET. Browsers send no Origin with these, and over HTTP no
// Sec-Fetch-Site, so they need the latter.
func (o *Origins) Check(r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if site := r.Header.Get("Sec-Fetch-Site"); site != "same-origin" {
			return ErrCrossOrigin
		}
		return nil
	}
	if o.c.Check(r) != nil {
		return ErrCrossOrigin
	}
	return nil
}
