package service

import (
	"context"

	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// A Request is a request for IDs.
type Request struct {
	Count    int       // see ParseCount
	Format   form.Form // zero: that of the layout
	Resolved form.Form // set before IDs are taken: the Format, with the prefix or key of the sequencer
	Runs     bool      // the IDs are requested as runs

	// MustExist means that the request creates no sequencer.
	MustExist bool

	// Fit returns what else is wrong with a sequencer for this request; nil
	// accepts every one. It is called before any ID is taken, perhaps twice.
	Fit func(*Sequencer) *Problem

	// Wait is called before the call waits. It returns the context to wait in;
	// nil changes nothing.
	Wait func() context.Context
}

// fit completes the request for its sequencer, or returns why it does not suit
// it.
func (r *Request) fit(s *Sequencer) *Problem {
	if r.Resolved = r.Format; r.Resolved.IsAuto() {
		r.Resolved = form.Of(s.Layout.Format())
	}
	if err := s.complete(&r.Resolved); err != nil {
		return Problemf(BadParameter, "%s", textfmt.Message(err))
	}
	if r.Runs && !s.Layout.HasRuns() {
		return Problemf(NoRuns, "layout %s has random bits or a step of 2^64 or more, so its IDs do not form runs: "+
			"request the IDs themselves", s.Layout)
	}
	if r.Fit == nil {
		return nil
	}
	return r.Fit(s)
}
