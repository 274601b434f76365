package rpcapi

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// defaultName is the sequencer of calls that do not name one.
const defaultName = "default"

// A request is a parsed call for IDs.
type request struct {
	runs      bool
	sequencer *service.Sequencer
}

// limited returns the context of a call with the server's limit.
func (s *Server) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.config.Limit)
}

// find validates a call and finds the sequencer. n is how many IDs it takes at
// once.
func (s *Server) find(ctx context.Context, name string, form firnv1.Form, n int64) (request, error) {
	var q request
	if n > int64(s.config.Limits.Count) {
		return q, invalid(service.BadParameter, "count", fmt.Sprintf("count is %d: it must be a number from 1 to %d", n, s.config.Limits.Count))
	}
	if err := service.CheckName(name); err != nil {
		return q, invalid(service.BadName, "sequencer", err.Error())
	}
	switch form {
	case firnv1.Form_FORM_UNSPECIFIED, firnv1.Form_FORM_IDS:
	case firnv1.Form_FORM_RUNS:
		q.runs = true
	default:
		return q, invalid(service.BadParameter, "form", fmt.Sprintf("form is %d: it must be FORM_IDS or FORM_RUNS", form))
	}
	var err error
	take := service.Taker{Backend: s.config.Backend, Auth: s.config.Auth}
	if q.sequencer, err = take.Find(ctx, name, credsOf(ctx)); err != nil {
		return q, s.failed(ctx, err)
	}
	if q.runs && !q.sequencer.Layout.HasRuns() {
		return q, invalid(service.NoRuns, "form", fmt.Sprintf("layout %s has random bits or a step of 2^64 or more, so its IDs do not form runs: use FORM_IDS", q.sequencer.Layout))
	}
	return q, nil
}

// take takes n IDs, or returns an error.
func (s *Server) take(ctx context.Context, q request, n int) (*firnv1.NextResponse, error) {
	b, err := q.sequencer.Take(ctx, n)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	a := &firnv1.NextResponse{Layout: q.sequencer.Layout.String(), Prefix: q.sequencer.Prefix}
	switch {
	case q.runs:
		for _, r := range b.Runs() {
			raw := form.Of(firn.Raw)
			run := &firnv1.Run{Step: r.Step, Count: uint32(r.Count)}
			if q.sequencer.Layout.Bits() == 128 {
				run.First128 = r.First.Append(nil, &raw)
			} else {
				run.First = r.First.Uint64()
			}
			a.Runs = append(a.Runs, run)
		}
	case q.sequencer.Layout.Bits() == 128:
		a.Ids128 = b.AppendRaw(nil, 0, n)
	default:
		a.Ids = make([]uint64, 0, n)
		for id := range b.All {
			a.Ids = append(a.Ids, id.Uint64())
		}
	}
	return a, nil
}

// Next makes IDs and returns them at once.
func (s *Server) Next(ctx context.Context, r *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	name := cmp.Or(r.GetSequencer(), defaultName)
	if err := s.authorize(ctx, auth.Take, name); err != nil {
		return nil, err
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	n := max(1, int64(r.GetCount())) // also if int has 32 bits
	q, err := s.find(ctx, name, r.GetForm(), n)
	if err != nil {
		return nil, err
	}
	if octets := n * int64(q.sequencer.Layout.Bits()) / 8; octets > manyOctets && !q.runs {
		if err := s.reserveAnswer(ctx, &q.sequencer.Layout, int(n)); err != nil {
			return nil, err
		}
	}
	return s.take(ctx, q, int(n))
}

// reserveAnswer waits until the call may make a long answer of n IDs.
func (s *Server) reserveAnswer(ctx context.Context, l *firn.Layout, n int) error {
	turn, cancel := service.WithTurn(ctx, l, n)
	defer cancel()
	k, size := callOf(ctx), min(int64(2*n*l.Bits()/8), maxHeld) // the IDs, and the message
	if k.meter.reserve(turn, size) == nil {
		k.reserved = size
		return nil
	}
	if err := k.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return fail(service.Busy, fmt.Sprintf("earlier answers were not read in %v, %d MiB of this connection or %d MiB of all: no ID was taken; take fewer at a time, or use another connection or server", s.config.Limit, maxHeld>>20, maxHeldAll>>20), time.Second)
}
