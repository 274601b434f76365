package auth

import (
	"errors"
	"net/http"
)

// ErrCrossOrigin is the error for a request from a page of another origin.
var ErrCrossOrigin = errors.New("the request comes from a page of another origin")

// Origins decides from which pages a browser may send requests that change
// something or take IDs and are authenticated by a cookie. It must be made by
// NewOrigins, and is safe for concurrent use.
//
// A request with a token in a header needs no such check: a page of another
// origin cannot set one.
type Origins struct {
	c *http.CrossOriginProtection
}

// NewOrigins makes an Origins that allows the server's own pages and those of
// the trusted origins, such as https://console.example.com.
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

// Check returns ErrCrossOrigin if another origin's page may have sent the
// request. Call it for requests that change something or take IDs, not for ones
// that only read.
//
// It also checks the methods that http.CrossOriginProtection always allows,
// because GET can take IDs. Browsers send no Origin with these, and no
// Sec-Fetch-Site over plain HTTP, so Check requires the latter.
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
