package rpcapi

import (
	"cmp"
	"context"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// defaultName is the sequencer of calls that do not name one.
const defaultName = "default"

// Next makes IDs and returns them at once.
func (s *Server) Next(ctx context.Context, r *firnv1.NextRequest) (*firnv1.NextResponse, error) {
	creds, name := credsOf(ctx), cmp.Or(r.GetSequencer(), defaultName)
	q := service.Request{Count: max(1, int(r.GetCount()))}
	if p := s.front.CheckTake(creds, name); p != nil {
		return nil, invalid("sequencer", p)
	}
	switch r.GetForm() {
	case firnv1.Form_FORM_UNSPECIFIED, firnv1.Form_FORM_IDS:
	case firnv1.Form_FORM_RUNS:
		q.Runs = true
	default:
		return nil, invalid("form", service.Problemf(service.BadParameter, "form is %d: it must be FORM_IDS or FORM_RUNS",
			r.GetForm()))
	}
	if p := s.front.CheckCount(int64(max(1, r.GetCount()))); p != nil {
		return nil, invalid("count", p)
	}
	ctx, cancel := s.front.Limited(ctx)
	defer cancel()
	var from *service.Sequencer
	q.Fit = func(of *service.Sequencer) *service.Problem {
		from = of
		if k := callOf(ctx); k.reserved == 0 && !q.Runs && q.Count*of.Layout.Bits()/8 > manyOctets {
			return s.reserveAnswer(ctx, k, &of.Layout, q.Count)
		}
		return nil
	}
	var b service.Batch
	p := s.front.Take(ctx, creds, name, &q, &b)
	switch {
	case p == nil:
		return answer(from, &b, q.Runs), nil
	case p.Kind == service.NoRuns:
		return nil, invalid("form", p)
	}
	return nil, s.callErrorOf(ctx, p)
}

// answer returns the answer with the IDs of a batch.
func answer(from *service.Sequencer, b *service.Batch, runs bool) *firnv1.NextResponse {
	a := &firnv1.NextResponse{Layout: from.Layout.String(), Prefix: from.Prefix}
	wide := from.Layout.Bits() == 128
	switch {
	case runs:
		for _, r := range b.Runs() {
			raw := form.Of(firn.Raw)
			run := &firnv1.Run{Step: r.Step, Count: uint32(r.Count)}
			if wide {
				run.First128 = r.First.Append(nil, &raw)
			} else {
				run.First = r.First.Uint64()
			}
			a.Runs = append(a.Runs, run)
		}
	case wide:
		a.Ids128 = b.AppendRaw(nil, 0, b.Len())
	default:
		a.Ids = make([]uint64, 0, b.Len())
		for id := range b.All {
			a.Ids = append(a.Ids, id.Uint64())
		}
	}
	return a
}

// reserveAnswer waits until a call may make a long answer of n IDs.
func (s *Server) reserveAnswer(ctx context.Context, k *call, l *firn.Layout, n int) *service.Problem {
	turn, cancel := service.WithTurn(ctx, l, n)
	defer cancel()
	size := min(int64(2*n*l.Bits()/8), maxHeld) // the IDs, and the message
	if k.conn.reserve(turn, size) == nil {
		k.reserved = size
		return nil
	}
	return service.Problemf(service.Busy, "earlier answers were not read in %v, %d MiB of this connection or %d MiB of "+
		"all: no ID was taken; take fewer at a time, or use another connection or server",
		s.front.RequestTimeout, maxHeld>>20, maxHeldAll>>20)
}
