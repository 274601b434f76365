package httpapi

import (
	"net/http"

	"github.com/firnid/firn/server/internal/access/auth"
)

// mayCreate reports whether a request for IDs may create its sequencer. A GET
// may come from a page of any origin, and on plain HTTP browsers do not say so,
// except to loopback. Certificates and passwords do not help: browsers add them
// to requests of any page, and tokens to none.
func (h *Handler) mayCreate(r *http.Request, creds *auth.Credentials) bool {
	return !h.exposed || r.Method != http.MethodGet || creds.Token != ""
}

// isCrossSite reports whether a browser sent the request for a page of another
// origin. Such a page cannot read the answer, as there are no CORS headers, but
// its GET would still take IDs and might create a sequencer.
//
// http.CrossOriginProtection has the rule, for methods other than GET.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false // not a browser, or a GET over plain HTTP: see mayCreate
	}
	as := *r
	as.Method = http.MethodPost
	return origins.Check(&as) != nil
}

var origins = http.NewCrossOriginProtection()
