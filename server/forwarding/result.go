package forwarding

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/service"
)

// A result is what came of asking another server.
type result int

// The results.
const (
	gave         result = iota // it gave IDs
	none                       // no other server is listed
	unlisted                   // this server is not listed, so no other one would answer it
	exhausted                  // it has no node ID either
	unreachable                // it cannot be reached, or is about to stop
	slow                       // it did not answer in time
	refused                    // it is not the server that was meant: another member, store or version
	unauthorized               // it does not let this server in
	rejected                   // its IDs are not of a window that this server's store knows
	unwell                     // it has a fault of its own, such as its clock
	failed                     // what was asked for, this server's store, or the client's time is at fault
	numResults
)

// resultTable says of each result what it is called in metrics and logs, what a
// client reads about a server with it, what an operator can do, for how long
// the server is not asked again, and whether for any sequencer or for the one
// that it was asked for.
var resultTable = [numResults]struct {
	name, text, hint string
	shun             time.Duration
	whole            bool
}{
	gave:        {name: "ok"},
	none:        {name: "none", text: "no other server can be asked"},
	unlisted:    {name: "unlisted", text: "this server is not listed in its store, so that it can ask no other server"},
	exhausted:   {name: "exhausted", text: "had none either", shun: time.Second},
	unreachable: {name: "unreachable", text: "did not answer", shun: 3 * time.Second, whole: true},
	slow:        {name: "slow", text: "did not answer in time", shun: 3 * time.Second},
	refused: {name: "refused", text: "turned out to be another server", shun: 10 * time.Second, whole: true,
		hint: "another server has its address now, or a proxy is in between: --advertise names an address that leads to one server; all servers of a store run the same release"},
	unauthorized: {name: "unauthorized", text: "did not let this server in", shun: 10 * time.Second,
		hint: "servers ask each other with --member-token, or with certificates of one authority"},
	rejected: {name: "rejected", text: "gave IDs that this server cannot vouch for", shun: 3 * time.Second,
		hint: "the two servers may use different stores, or their clocks may differ by more than 10 seconds"},
	unwell: {name: "unwell", text: "could not answer"},
	failed: {name: "failed"},
}

// String is the result as metrics and logs have it.
func (r result) String() string { return resultTable[r].name }

// ofPeer reports whether the result says nothing of the request: another server
// may answer it.
func (r result) ofPeer() bool { return r != gave && r != failed }

// resultOf is what an error of a hop means. The context is that of the call.
func resultOf(ctx context.Context, err error) result {
	var e *ForwardError
	switch {
	case err == nil:
		return gave
	case ctx.Err() != nil, errors.Is(err, sequencer.ErrClosed), errors.Is(err, errUnchecked):
		return failed
	case errors.Is(err, errSlow):
		return slow
	case errors.Is(err, ErrUnreachable):
		return unreachable
	case errors.Is(err, errRejected):
		return rejected
	case errors.Is(err, ErrRefused):
		return refused
	case errors.Is(err, grant.ErrNodesExhausted):
		return exhausted
	case !errors.As(err, &e):
		return unwell
	case e.Kind == service.Unauthorized, e.Kind == service.Forbidden:
		return unauthorized
	case e.Kind.Scope() == service.OfSequencer:
		return failed
	}
	return unwell
}

// counts are how often there was each result.
type counts [numResults]atomic.Uint64

func (c *counts) add(r result) { c[r].Add(1) }

func (c *counts) all() map[string]uint64 {
	all := make(map[string]uint64, numResults)
	for r := range numResults {
		all[r.String()] = c[r].Load()
	}
	return all
}

// summary says to a client why no other server has helped, with the results of
// those that were asked. It names no server.
func summary(of []result) string {
	var parts []string
	for r := range numResults {
		n := 0
		for _, one := range of {
			if one == r {
				n++
			}
		}
		switch {
		case n == 0:
		case r == none || r == unlisted:
			return resultTable[r].text
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, resultTable[r].text))
		}
	}
	return "of the other servers, " + strings.Join(parts, ", ")
}
