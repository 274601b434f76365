package service

import (
	"iter"
	"net/http"
)

// A Kind is a sort of problem: what a client can tell problems apart by, over every
// protocol. docs/http.md lists all.
type Kind int

// The kinds. Names are a contract; statuses follow these rules:
//
//   - 400 and other 4xx: the same request can never be answered here.
//   - 503: it can be answered later. Fault.Retry says when, where that is known.
//   - 500 and 507: somebody has to change something at the server first.
const (
	BadParameter Kind = iota
	BadName
	BadID
	UnexpectedBody
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
	numKinds
)

// kinds says of each Kind what it is called, its status of HTTP, and what it is in a sentence.
var kinds = [numKinds]struct {
	name   string
	status int
	title  string
}{
	BadParameter:     {"bad-parameter", http.StatusBadRequest, "A parameter is wrong"},
	BadName:          {"bad-name", http.StatusBadRequest, "This is not the name of a sequencer"},
	BadID:            {"bad-id", http.StatusBadRequest, "This is not an ID"},
	UnexpectedBody:   {"unexpected-body", http.StatusBadRequest, "The request has a body"},
	NoRuns:           {"no-runs", http.StatusBadRequest, "IDs of this layout have no runs"},
	BatchTooLarge:    {"batch-too-large", http.StatusBadRequest, "So many IDs take longer than a request may"},
	CrossSite:        {"cross-site", http.StatusForbidden, "The request comes from another web site"},
	BadBody:          {"bad-body", http.StatusBadRequest, "The body is wrong"},
	Unauthorized:     {"unauthorized", http.StatusUnauthorized, "There is no token, or not a known one"},
	Forbidden:        {"forbidden", http.StatusForbidden, "The token does not allow this"},
	NoSequencer:      {"no-sequencer", http.StatusNotFound, "There is no such sequencer"},
	NoStore:          {"no-store", http.StatusConflict, "The server has no store"},
	Different:        {"different", http.StatusConflict, "The sequencer exists and is different"},
	NotFound:         {"not-found", http.StatusNotFound, "There is nothing here"},
	MethodNotAllowed: {"method-not-allowed", http.StatusMethodNotAllowed, "This path has no such method"},
	NotAcceptable:    {"not-acceptable", http.StatusNotAcceptable, "There is no answer in an accepted form"},
	ForeignHost:      {"foreign-host", http.StatusMisdirectedRequest, "The Host is not this machine's own"},
	BadConfig:        {"bad-config", http.StatusInternalServerError, "The server's configuration is wrong"},
	Internal:         {"internal", http.StatusInternalServerError, "The server has failed"},
	TimeOver:         {"time-over", http.StatusInternalServerError, "The layout has no time left"},
	Busy:             {"busy", http.StatusServiceUnavailable, "No ID was free in time"},
	Cancelled:        {"cancelled", http.StatusServiceUnavailable, "The request was given up"},
	ClockWrong:       {"clock", http.StatusServiceUnavailable, "The server's clock is wrong"},
	ClockAhead:       {"clock-ahead", http.StatusServiceUnavailable, "The server's clock seems to be ahead"},
	NoGrant:          {"no-grant", http.StatusServiceUnavailable, "The server holds no node number now"},
	NodesExhausted:   {"nodes-exhausted", http.StatusServiceUnavailable, "All node numbers are held by others"},
	NotYet:           {"not-yet", http.StatusServiceUnavailable, "No node ID may be used yet"},
	StoreUnavailable: {"store-unavailable", http.StatusServiceUnavailable, "The store does not answer"},
	StoreRolledBack:  {"store-rolled-back", http.StatusServiceUnavailable, "The store went back to an earlier state"},
	Detached:         {"detached", http.StatusConflict, "The sequencer is detached"},
	Destroyed:        {"destroyed", http.StatusGone, "The sequencer is destroyed"},
	Recreated:        {"recreated", http.StatusServiceUnavailable, "The sequencer was created again with another layout"},
	BadRecord:        {"bad-record", http.StatusInternalServerError, "The store's record of the sequencer cannot be used"},
	Draining:         {"draining", http.StatusServiceUnavailable, "The server is about to stop"},
	TooManyNames:     {"too-many-names", http.StatusInsufficientStorage, "There are too many sequencers"},
}

// Kinds are all kinds, in the order of their constants.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for k := range numKinds {
			if !yield(k) {
				return
			}
		}
	}
}

// String is the name of the kind: the type of a problem of HTTP is urn:firn:problem: and it.
func (k Kind) String() string { return kinds[k].name }

// Status is that of an answer over HTTP.
func (k Kind) Status() int { return kinds[k].status }

// Title says what the problem is, for people.
func (k Kind) Title() string { return kinds[k].title }
