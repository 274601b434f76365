package service

import (
	"iter"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"
)

// A Kind is a sort of problem: what a client can tell problems apart by, over
// every protocol. docs/http.md lists all that clients see.
type Kind int

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
	Detached
	Destroyed
	Recreated
	BadRecord
	Draining
	TooManyNames

	// Between servers of a store. No client sees them.
	HopVersion
	OtherMember
	OtherStore

	numKinds
)

// A Scope is what a problem concerns, and so which other requests have it too.
type Scope int

// The scopes, the narrowest first.
const (
	OfRequest   Scope = iota // the request: no server answers it
	OfSequencer              // the sequencer: all servers of the store say the same
	OfMember                 // the sequencer at this server: another server may answer
	OfServer                 // the server: it answers no request of this client
)

// First words of errors over RESP. Clients act on some that Redis has, so these
// are chosen by what clients do. Not used are LOADING, BUSY, MASTERDOWN,
// CLUSTERDOWN, MOVED and READONLY: with them clients close the connection, look
// for another server or hide the text.
const (
	respErr         = "ERR"         // clients hand it to their callers
	respTryAgain    = "TRYAGAIN"    // go-redis tries again by itself, a few times; no ID was taken
	respUnavailable = "UNAVAILABLE" // Redis has no such word, so that no client acts on it
	respNoAuth      = "NOAUTH"
	respNoPerm      = "NOPERM"
)

// kinds is the registry of what can go wrong, which all protocols and the Go
// client read (client/kinds.go is written from it). Statuses follow these
// rules:
//
//   - 400 and other 4xx: the same request can never be answered here.
//   - 503: it can be answered later. Fault.Retry says when, if that is known.
//   - 500 and 507: an operator has to change something at the server first.
var kinds = [numKinds]struct {
	name   string
	title  string // for people, without a full stop
	status int    // of HTTP
	resp   string // the first word of an error over RESP
	code   codes.Code
	scope  Scope
	retry  time.Duration // when to ask again, if an error does not know better; 0: never, or unknown
	logged bool          // the server has failed, so that its log has the error
	hint   string        // what a user of package client can do; "" if nothing
}{
	BadParameter:    {name: "bad-parameter", title: "A parameter is wrong", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument},
	BadName:         {name: "bad-name", title: "This is not the name of a sequencer", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument},
	BadID:           {name: "bad-id", title: "This is not an ID", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument},
	UnexpectedBody:  {name: "unexpected-body", title: "The request has a body", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument, hint: "something between this program and the server adds a body to requests"},
	UnexpectedRange: {name: "unexpected-range", title: "The request asks for a part of an answer", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument, hint: "something between this program and the server asks for parts of answers"},
	NoRuns:          {name: "no-runs", title: "IDs of this layout have no runs", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument},
	BatchTooLarge: {name: "batch-too-large", title: "So many IDs take longer than a request may", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument,
		scope: OfSequencer, hint: "set a smaller MaxCount in Config.Prefetch"},
	CrossSite: {name: "cross-site", title: "The request comes from another web site", status: http.StatusForbidden, resp: respNoPerm, code: codes.PermissionDenied, hint: "something between this program and the server adds the headers of a browser"},
	BadBody:   {name: "bad-body", title: "The body is wrong", status: http.StatusBadRequest, resp: respErr, code: codes.InvalidArgument},
	Unauthorized: {name: "unauthorized", title: "There is no token, or not a known one", status: http.StatusUnauthorized, resp: respNoAuth, code: codes.Unauthenticated,
		scope: OfServer, hint: "see whether Config.Token is right"},
	Forbidden: {name: "forbidden", title: "The token does not allow this", status: http.StatusForbidden, resp: respNoPerm, code: codes.PermissionDenied,
		scope: OfMember, hint: "the token in Config.Token needs the role generate for this sequencer"},
	NoSequencer: {name: "no-sequencer", title: "There is no such sequencer", status: http.StatusNotFound, resp: respErr, code: codes.NotFound,
		scope: OfSequencer, hint: "firn sequencer create"},
	NoStore: {name: "no-store", title: "The server has no store", status: http.StatusConflict, resp: respErr, code: codes.FailedPrecondition,
		scope: OfServer, hint: "start the server with --store"},
	Different:        {name: "different", title: "The sequencer exists and is different", status: http.StatusConflict, resp: respErr, code: codes.AlreadyExists, scope: OfSequencer},
	NotFound:         {name: "not-found", title: "There is nothing here", status: http.StatusNotFound, resp: respErr, code: codes.NotFound, hint: "see whether Config.Servers has the right path"},
	MethodNotAllowed: {name: "method-not-allowed", title: "This path has no such method", status: http.StatusMethodNotAllowed, resp: respErr, code: codes.Unimplemented},
	NotAcceptable:    {name: "not-acceptable", title: "There is no answer in an accepted form", status: http.StatusNotAcceptable, resp: respErr, code: codes.InvalidArgument},
	ForeignHost: {name: "foreign-host", title: "The Host is not this machine's own", status: http.StatusMisdirectedRequest, resp: respNoPerm, code: codes.PermissionDenied,
		scope: OfServer, hint: "name the server by localhost or a loopback address, or start it with --insecure"},
	BadConfig: {name: "bad-config", title: "The server's configuration is wrong", status: http.StatusInternalServerError, resp: respErr, code: codes.Internal,
		scope: OfMember, logged: true, hint: "firn config check finds what is wrong with the server's configuration of this sequencer"},
	Internal: {name: "internal", title: "The server has failed", status: http.StatusInternalServerError, resp: respErr, code: codes.Internal,
		scope: OfServer, logged: true, hint: "the server's log says more"},
	TimeOver: {name: "time-over", title: "The layout has no time left", status: http.StatusInternalServerError, resp: respErr, code: codes.OutOfRange,
		scope: OfSequencer, hint: "the layout has no time left: another sequencer is needed"},
	Busy: {name: "busy", title: "More is asked for than can be answered in time", status: http.StatusServiceUnavailable, resp: respTryAgain, code: codes.Unavailable,
		scope: OfSequencer, retry: time.Second, hint: "more IDs are asked for than the layout has room for: more servers make more"},
	Cancelled: {name: "cancelled", title: "The request was given up", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable, scope: OfMember},
	ClockWrong: {name: "clock", title: "The server's clock is wrong", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable,
		scope: OfMember, logged: true, hint: "set the server's clock right"},
	ClockAhead: {name: "clock-ahead", title: "The server's clock seems to be ahead", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable,
		scope: OfMember, logged: true, hint: "compare the server's clock with a time server"},
	NoGrant: {name: "no-grant", title: "The server holds no node ID now", status: http.StatusServiceUnavailable, resp: respTryAgain, code: codes.Unavailable, scope: OfMember, retry: time.Second},
	NodesExhausted: {name: "nodes-exhausted", title: "All node IDs are held by others", status: http.StatusServiceUnavailable, resp: respTryAgain, code: codes.ResourceExhausted,
		scope: OfMember, retry: time.Second, hint: "stop a server, or choose a layout with more node bits"},
	NotYet: {name: "not-yet", title: "No node ID may be used yet", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable, scope: OfMember, retry: time.Second},
	StoreUnavailable: {name: "store-unavailable", title: "The store does not answer", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable,
		scope: OfMember, retry: time.Second, logged: true, hint: "the server's log says more"},
	StoreRolledBack: {name: "store-rolled-back", title: "The store went back to an earlier state", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable,
		scope: OfMember, logged: true, hint: "firn node fence"},
	Detached:  {name: "detached", title: "The sequencer is detached", status: http.StatusConflict, resp: respErr, code: codes.FailedPrecondition, scope: OfSequencer, hint: "firn sequencer attach"},
	Destroyed: {name: "destroyed", title: "The sequencer is destroyed", status: http.StatusGone, resp: respErr, code: codes.FailedPrecondition, scope: OfSequencer, hint: "firn sequencer create makes it again"},
	Recreated: {name: "recreated", title: "The sequencer was created again with another layout", status: http.StatusServiceUnavailable, resp: respTryAgain, code: codes.Unavailable, scope: OfSequencer, retry: time.Second},
	BadRecord: {name: "bad-record", title: "The store's record of the sequencer cannot be used", status: http.StatusInternalServerError, resp: respErr, code: codes.Internal,
		scope: OfSequencer, logged: true, hint: "the server's log says more"},
	Draining: {name: "draining", title: "The server is about to stop", status: http.StatusServiceUnavailable, resp: respUnavailable, code: codes.Unavailable, scope: OfServer},
	TooManyNames: {name: "too-many-names", title: "There are too many sequencers", status: http.StatusInsufficientStorage, resp: respErr, code: codes.ResourceExhausted,
		scope: OfMember, hint: "start the server with a higher --max-sequencers, or use fewer names"},

	HopVersion:  {name: "hop-version", title: "The servers run different releases", status: http.StatusConflict, resp: respErr, code: codes.FailedPrecondition, scope: OfServer},
	OtherMember: {name: "other-member", title: "Another server was meant", status: http.StatusConflict, resp: respErr, code: codes.FailedPrecondition, scope: OfServer},
	OtherStore:  {name: "other-store", title: "The servers use different stores", status: http.StatusConflict, resp: respErr, code: codes.FailedPrecondition, scope: OfServer},
}

// Kinds are all kinds that clients see, in the order of their constants.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for k := range HopVersion {
			if !yield(k) {
				return
			}
		}
	}
}

// ParseKind returns the kind of a name.
func ParseKind(name string) (k Kind, ok bool) {
	for k := range numKinds {
		if kinds[k].name == name {
			return k, true
		}
	}
	return 0, false
}

// String is the name of the kind: the type of a problem of HTTP is
// urn:firn:problem: and it.
func (k Kind) String() string { return kinds[k].name }

// Title says what the problem is, for people.
func (k Kind) Title() string { return kinds[k].title }

// Status is that of an answer over HTTP.
func (k Kind) Status() int { return kinds[k].status }

// RESP is the first word of an error over RESP.
func (k Kind) RESP() string { return kinds[k].resp }

// Code is that of gRPC: UNAVAILABLE may be tried again, and others not.
func (k Kind) Code() codes.Code { return kinds[k].code }

// Scope is what the problem concerns.
func (k Kind) Scope() Scope { return kinds[k].scope }
