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

// A result is the result of asking another server.
type result int

// The results.
const (
	gave         result = iota // it gave IDs
	none                       // no other server is listed
	unlisted                   // this server is not listed, so no other server would answer it
	exhausted                  // it has no node ID either
	unreachable                // it cannot be reached, or is about to stop
	slow                       // it did not answer in time
	refused                    // it is not the intended server: it has another member ID, store or version
	unauthorized               // it denies this server access
	rejected                   // its IDs are not in a window that this server's store knows
	unwell                     // it has a fault of its own, such as its clock
	failed                     // the request, this server's store or the client's deadline is at fault
	numResults
)

// resultTable has for each result its name in metrics and logs, its text for
// clients, what an operator can do, for how long the server is not asked again,
// and whether that holds for all sequencers or only for this one.
var resultTable = [numResults]struct {
	name, text, hint string
	shun             time.Duration
	whole            bool
}{
	gave:        {name: "ok"},
	none:        {name: "none", text: "no other server can be asked"},
	unlisted:    {name: "unlisted", text: "this server is not listed in its store, so it can ask no other server"},
	exhausted:   {name: "exhausted", text: "had no node ID either", shun: time.Second},
	unreachable: {name: "unreachable", text: "did not answer", shun: 3 * time.Second, whole: true},
	slow:        {name: "slow", text: "did not answer in time", shun: 3 * time.Second},
	refused: {name: "refused", text: "turned out to be another server", shun: 10 * time.Second, whole: true,
		hint: "another server has its address now, or a proxy is in between: set --advertise to an address that leads to exactly this server, and run the same release on all servers of the store"},
	unauthorized: {name: "unauthorized", text: "denied this server access", shun: 10 * time.Second,
		hint: "give all servers a --member-token, or certificates of one authority"},
	rejected: {name: "rejected", text: "gave IDs that this server could not verify", shun: 3 * time.Second,
		hint: "the two servers may use different stores, or their clocks may differ by more than 10 seconds"},
	unwell: {name: "unwell", text: "could not answer"},
	failed: {name: "failed"},
}

// String returns the name of the result in metrics and logs.
func (r result) String() string { return resultTable[r].name }

// ofPeer reports whether the result says nothing about the request: another
// server may answer it.
func (r result) ofPeer() bool { return r != gave && r != failed }

// resultOf returns the result for an error of a hop. ctx is the context of the
// call.
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

// counts has a counter for each result.
type counts [numResults]atomic.Uint64

func (c *counts) add(r result) { c[r].Add(1) }

func (c *counts) all() map[string]uint64 {
	all := make(map[string]uint64, numResults)
	for r := range numResults {
		all[r.String()] = c[r].Load()
	}
	return all
}

// summary explains to a client why no other server has helped, from the results
// of asking them. It names no server.
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
	return "other servers: " + strings.Join(parts, ", ")
}
