package service

import (
	"errors"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/firnid/firn"
)

// A Kind is a kind of problem that clients can distinguish, over every
// protocol. docs/http.md lists all kinds that clients see.
type Kind int

// NoProblem is the Kind of a request that succeeded. It has no row in kinds:
// only its value may be used.
const NoProblem Kind = -1

// The kinds. Their names are a contract.
const (
	BadParameter Kind = iota
	BadName
	BadID
	UnexpectedBody
	UnexpectedRange
	NoRuns
	BatchTooLarge
	CrossSite
	BadBody
	Unauthorized
	Forbidden
	NoSequencer
	NoStore
	Different
	NotFound
	MethodNotAllowed
	NotAcceptable
	ForeignHost
	BadConfig
	Internal
	TimeOver
	Busy
	Cancelled
	ClockWrong
	ClockAhead
	NoGrant
	NodesExhausted
	NotYet
	StoreUnavailable
	StoreRolledBack
	Moved
	Detached
	Destroyed
	Recreated
	BadRecord
	Draining
	TooManyNames
	RateLimited

	NumKinds // the number of kinds
)

// First words of RESP errors. Client libraries act on some of Redis's words, so
// these are chosen by what clients do. LOADING, BUSY, MASTERDOWN, CLUSTERDOWN,
// MOVED and READONLY are not used: they make clients close the connection, look
// for another server or hide the text.
const (
	respErr         = "ERR"         // clients return it to their callers
	respTryAgain    = "TRYAGAIN"    // go-redis retries by itself a few times; no ID was taken
	respUnavailable = "UNAVAILABLE" // not a word of Redis, so no client acts on it
	respNoAuth      = "NOAUTH"
	respNoPerm      = "NOPERM"
)

// A reply is how the protocols report a kind.
type reply struct {
	status int    // of HTTP
	resp   string // the first word of an error over RESP
	code   codes.Code
}

// The replies of several kinds.
var (
	invalid     = reply{http.StatusBadRequest, respErr, codes.InvalidArgument}
	denied      = reply{http.StatusForbidden, respNoPerm, codes.PermissionDenied}
	notFound    = reply{http.StatusNotFound, respErr, codes.NotFound}
	conflict    = reply{http.StatusConflict, respErr, codes.FailedPrecondition}
	internal    = reply{http.StatusInternalServerError, respErr, codes.Internal}
	unavailable = reply{http.StatusServiceUnavailable, respUnavailable, codes.Unavailable}
	tryAgain    = reply{http.StatusServiceUnavailable, respTryAgain, codes.Unavailable}
)

// kinds is the registry of problems, which all protocols and the Go client use
// (client/kinds.go is generated from it). Statuses follow these rules:
//
//   - 401, 403, 404, 409, 410 and 421: the same request fails until someone
//     acts, such as gives the token a role, or attaches the sequencer.
//   - 400 and other 4xx but 429: the same request never succeeds here.
//   - 429: it succeeds after Problem.Retry.
//   - 503: it can succeed later. Problem.Retry says when, if that is known.
//   - 507: it can succeed after another sequencer was unused for minUnused, or
//     an operator has raised the limit. With a static node ID, only then.
//   - 500: an operator has to change something at the server first.
//
// In package client, an error with a kind of 429 or 503 always matches an error
// that tells a program to try again later: the error that a sequencer in the
// process has for this reason (see errorKinds), or else firn.ErrExhausted if
// RESP says TRYAGAIN, because the server works, and firn.ErrUnavailable if it
// says UNAVAILABLE.
var kinds = [NumKinds]struct {
	name  string
	title string // for people, without a full stop
	reply
	retry  time.Duration // when to retry, unless the error knows better; 0: never, or unknown
	logged bool          // the server has failed and logs the error
	scope  scope         // what it says of a server that gives no IDs of a sequencer for this reason

	// For package client: TestClientKinds writes them to client/kinds.go.
	hint     string // what its user can do; "" if nothing
	ofServer bool   // the server refuses every request of this client
	notOfIDs bool   // no request for IDs has it, unless a proxy changes the request
}{
	BadParameter: {name: "bad-parameter", title: "Invalid parameter", reply: invalid},
	BadName:      {name: "bad-name", title: "Invalid sequencer name", reply: invalid},
	BadID:        {name: "bad-id", notOfIDs: true, title: "Invalid ID", reply: invalid},
	UnexpectedBody: {name: "unexpected-body", notOfIDs: true, title: "Unexpected request body", reply: invalid,
		hint: "something between this program and the server adds a body to requests"},
	UnexpectedRange: {name: "unexpected-range", notOfIDs: true, title: "Range requests are not supported", reply: invalid,
		hint: "something between this program and the server asks for parts of answers"},
	NoRuns: {name: "no-runs", notOfIDs: true, title: "IDs of this layout have no runs", reply: invalid},
	BatchTooLarge: {name: "batch-too-large", title: "Too many IDs for one request", reply: invalid,
		hint: "set a smaller MaxCount in Config.Prefetch"},
	CrossSite: {name: "cross-site", notOfIDs: true, title: "Request from another web site", reply: denied,
		hint: "something between this program and the server adds the headers of a browser"},
	BadBody: {name: "bad-body", notOfIDs: true, title: "Invalid request body", reply: invalid},
	Unauthorized: {name: "unauthorized", title: "Missing or unknown token",
		reply:    reply{http.StatusUnauthorized, respNoAuth, codes.Unauthenticated},
		ofServer: true, hint: "check Config.Token"},
	Forbidden: {name: "forbidden", title: "Permission denied", reply: denied,
		hint: "the token in Config.Token needs the role generate for this sequencer"},
	NoSequencer: {name: "no-sequencer", title: "Sequencer not found", reply: notFound,
		hint: "create it: firn sequencer create"},
	NoStore: {name: "no-store", notOfIDs: true, title: "The server has no store", reply: conflict, ofServer: true,
		hint: "start the server with --store"},
	Different: {name: "different", notOfIDs: true, title: "The sequencer exists with other settings",
		reply: reply{http.StatusConflict, respErr, codes.AlreadyExists}},
	NotFound: {name: "not-found", notOfIDs: true, title: "Not found", reply: notFound,
		hint: "check the paths in Config.Servers"},
	MethodNotAllowed: {name: "method-not-allowed", notOfIDs: true, title: "Method not allowed",
		reply: reply{http.StatusMethodNotAllowed, respErr, codes.Unimplemented}},
	NotAcceptable: {name: "not-acceptable", notOfIDs: true, title: "No acceptable response format",
		reply: reply{http.StatusNotAcceptable, respErr, codes.InvalidArgument}},
	ForeignHost: {name: "foreign-host", title: "The Host header names another machine",
		reply:    reply{http.StatusMisdirectedRequest, respNoPerm, codes.PermissionDenied},
		ofServer: true, hint: "use localhost or a loopback address in Config.Servers, or start the server with --allow-host"},
	BadConfig: {name: "bad-config", scope: scopeStore, title: "Invalid server configuration", reply: internal,
		logged: true, hint: "run firn config check on the server: its configuration of this sequencer is invalid"},
	Internal: {name: "internal", scope: scopeSequencer, title: "Internal server error", reply: internal, ofServer: true,
		logged: true, hint: "see the server's log"},
	TimeOver: {name: "time-over", scope: scopeSequencer, title: "The layout's time range has ended",
		reply: reply{http.StatusInternalServerError, respErr, codes.OutOfRange},
		hint:  "create another sequencer, with more time bits in its layout: with a later epoch, its IDs would repeat"},
	Busy: {name: "busy", title: "More IDs are requested than can be made in time", reply: tryAgain,
		retry: time.Second, hint: "clients ask for more IDs than one node ID can make: add servers"},
	Cancelled: {name: "cancelled", notOfIDs: true, title: "The request was cancelled", reply: unavailable},
	ClockWrong: {name: "clock", scope: scopeServer, title: "The server's clock is wrong", reply: unavailable,
		logged: true, hint: "correct the server's clock"},
	ClockAhead: {name: "clock-ahead", scope: scopeServer, title: "The server's clock seems to be ahead",
		reply:  unavailable,
		logged: true, hint: "compare the server's clock with a time server"},
	NoGrant: {name: "no-grant", title: "The server holds no node ID", reply: tryAgain, retry: time.Second},
	NodesExhausted: {name: "nodes-exhausted", scope: scopeSequencer, title: "All node IDs are in use",
		reply: reply{http.StatusServiceUnavailable, respTryAgain, codes.ResourceExhausted},
		retry: time.Second, hint: "stop a server, or choose a layout with more node bits"},
	NotYet: {name: "not-yet", scope: scopeSequencer, title: "No node ID can be used yet", reply: unavailable,
		retry: time.Second},
	StoreUnavailable: {name: "store-unavailable", scope: scopeStore, title: "The store is unavailable", reply: unavailable,
		retry: time.Second, logged: true, hint: "see the server's log"},
	StoreRolledBack: {name: "store-rolled-back", scope: scopeServer, title: "The store went back to an earlier state",
		reply:  unavailable,
		logged: true, hint: "run firn node fence"},
	Moved: {name: "moved", scope: scopeWanted, title: "The sequencer is in another store", reply: conflict,
		hint: "ask a server of that store, or bring it back: firn sequencer move"},
	Detached: {name: "detached", scope: scopeWanted, title: "The sequencer is detached", reply: conflict,
		hint: "run firn sequencer attach"},
	Destroyed: {name: "destroyed", scope: scopeWanted, title: "The sequencer is destroyed",
		reply: reply{http.StatusGone, respErr, codes.FailedPrecondition},
		hint:  "create it again: firn sequencer create"},
	Recreated: {name: "recreated", title: "The sequencer was recreated with another layout", reply: tryAgain,
		retry: time.Second},
	BadRecord: {name: "bad-record", scope: scopeStore, title: "The sequencer's record in the store is unusable",
		reply:  internal,
		logged: true, hint: "see the server's log"},
	Draining: {name: "draining", title: "The server is shutting down", reply: unavailable, ofServer: true},
	TooManyNames: {name: "too-many-names", title: "Too many sequencers",
		reply: reply{http.StatusInsufficientStorage, respErr, codes.ResourceExhausted},
		hint:  "start the server with a higher --max-sequencers, or use fewer names"},
	RateLimited: {name: "rate-limited", title: "The client's limit is reached",
		reply: reply{http.StatusTooManyRequests, respTryAgain, codes.ResourceExhausted},
		hint:  "ask less often, or have the limit of this token raised"},
}

// ParseKind returns the kind with a name.
func ParseKind(name string) (k Kind, ok bool) {
	for k := range NumKinds {
		if kinds[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// String returns the name of the kind.
func (k Kind) String() string { return kinds[k].name }

// Type returns the type of a problem over HTTP.
func (k Kind) Type() string { return problemType + k.String() }

// isTemporary reports whether the same request can succeed later by itself.
func (k Kind) isTemporary() bool {
	return kinds[k].status == http.StatusServiceUnavailable || kinds[k].status == http.StatusTooManyRequests
}

// Title returns the problem in a few words, for people.
func (k Kind) Title() string { return kinds[k].title }

// Status returns the HTTP status.
func (k Kind) Status() int { return kinds[k].status }

// RESP returns the first word of the error over RESP.
func (k Kind) RESP() string { return kinds[k].resp }

// Code returns the gRPC code. A Problem with a Retry may be retried, whatever
// its code.
func (k Kind) Code() codes.Code { return kinds[k].code }

// A scope is what a Kind says of a server that gives no IDs of a sequencer. The
// table in docs/runbooks.md has the consequences of each.
type scope int

const (
	scopeNone      scope = iota // it ends by itself, or concerns a request
	scopeWanted                 // an operator wanted it
	scopeStore                  // Ready looks at the cause itself: the store, or its configurations
	scopeSequencer              // other sequencers may be served
	scopeServer                 // the cause is the server or its store
)

// scopeOf returns the scope of an error.
func scopeOf(err error) scope {
	switch {
	case err == nil:
		return scopeNone
	case errors.Is(err, firn.ErrBeforeEpoch): // more likely the epoch is wrong than the clock
		return scopeSequencer
	}
	return kinds[kindOf(err)].scope
}
