package kubestore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/firnid/firn/grant"
)

// errClosed is the error of calls after Close.
var errClosed = fmt.Errorf("%w: kubestore: the store is closed", grant.ErrNotSent)

// A refusal is an answer other than success, of the API server or of a proxy.
type refusal struct {
	code       int
	retryAfter time.Duration
	status     apiStatus // its kind is Status if the answer comes from the API server
}

// An apiStatus is the object with which the API server refuses a request.
type apiStatus struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Details struct {
		Name  string `json:"name"`
		Group string `json:"group"`
		Kind  string `json:"kind"`
	} `json:"details"`
}

func newRefusal(answer *http.Response, body []byte) *refusal {
	r := &refusal{code: answer.StatusCode}
	if json.Unmarshal(body, &r.status) != nil || r.status.Kind != "Status" {
		r.status = apiStatus{}
	}
	if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && s > 0 {
		r.retryAfter = time.Duration(s) * time.Second
	}
	return r
}

func (r *refusal) Error() string {
	return cmp.Or(r.status.Message, fmt.Sprintf("the answer is %d %s", r.code, http.StatusText(r.code)))
}

// isAboutLease reports whether the API server has refused a write because of the
// state of the Lease with this name. Quotas and admission also answer 409,
// about other objects or without a reason.
func (r *refusal) isAboutLease(reason, name string) bool {
	d := r.status.Details
	return r.code == http.StatusConflict && r.status.Reason == reason &&
		d.Kind == "leases" && d.Group == "coordination.k8s.io" && d.Name == name
}

// isDenial reports whether the API server does not accept such a write, from
// this user, with this content or into this namespace.
func (r *refusal) isDenial() bool {
	if r.status.Kind == "" {
		return false // from a proxy
	}
	switch r.code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// isPassing reports whether the same read may succeed a moment later.
func (r *refusal) isPassing() bool {
	return r.code == http.StatusTooManyRequests || r.code == http.StatusRequestTimeout || r.code >= 500
}

// is reports whether err is an answer with this status code.
func is(err error, code int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == code
}
