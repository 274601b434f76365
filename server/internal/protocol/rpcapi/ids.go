package rpcapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// defaultName is the sequencer of calls that do not name one.
const defaultName = "default"

// maxBatch is how many IDs a client may request per response of Stream. A
// response has fewer if they do not fit into maxPiece bytes: an ID of 64 bits
// takes idOctets, and a run up to 48.
const (
	maxBatch = 10_000
	idOctets = 8
	maxRuns  = maxPiece / 48
)

// maxCredit is how many IDs one message of Stream can allow.
const maxCredit = 1_000_000_000

// A request is a parsed call for IDs.
type request struct {
	name      string
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
	q := request{name: name}
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
func (s *Server) take(ctx context.Context, q request, n int) (*firnv1.StreamResponse, error) {
	b, err := q.sequencer.Take(ctx, n)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	a := new(firnv1.StreamResponse)
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
	a, err := s.take(ctx, q, int(n))
	if err != nil {
		return nil, err
	}
	return &firnv1.NextResponse{Ids: a.Ids, Ids128: a.Ids128, Runs: a.Runs, Layout: q.sequencer.Layout.String(), Prefix: q.sequencer.Prefix}, nil
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

// A credit is how many more IDs a stream may send, or why there will be no more
// credit: io.EOF if the client is done.
type credit struct {
	n   uint64
	err error
}

// receive passes on the credit of a stream's messages, the first of which has
// arrived, until there will be no more or the stream ends. credits has room for
// one: it joins what is not taken yet, and never waits for the client to read.
func receive(stream grpc.BidiStreamingServer[firnv1.StreamRequest, firnv1.StreamResponse], first *firnv1.StreamRequest, credits chan credit) {
	r, err := first, error(nil)
	for {
		c := credit{r.GetCredit(), err}
		switch {
		case err != nil:
		case c.n > maxCredit:
			c.err = invalid(service.BadParameter, "credit", fmt.Sprintf("credit is %d: a message can give up to %d", c.n, maxCredit))
		case r != first && (r.GetSequencer() != "" || r.GetBatch() != 0 || r.GetForm() != 0):
			c.err = invalid(service.BadParameter, "sequencer", "only the first message may set sequencer, batch and form")
		}
		select {
		case earlier := <-credits:
			c.n += min(earlier.n, math.MaxUint64-c.n)
		default:
		}
		credits <- c
		if c.err != nil {
			return
		}
		r, err = stream.Recv()
	}
}

// Stream makes as many IDs as the client gives credit for.
func (s *Server) Stream(stream grpc.BidiStreamingServer[firnv1.StreamRequest, firnv1.StreamResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return invalid(service.BadParameter, "sequencer", "no request received: the first one names the sequencer and gives credit")
	}
	if err != nil {
		return err
	}
	name := cmp.Or(first.GetSequencer(), defaultName)
	batch := uint64(first.GetBatch())
	switch {
	case batch == 0:
		batch = uint64(min(1000, s.config.Limits.Count))
	case batch > uint64(min(maxBatch, s.config.Limits.Count)):
		return invalid(service.BadParameter, "batch", fmt.Sprintf("batch is %d: it must be a number from 1 to %d", batch, min(maxBatch, s.config.Limits.Count)))
	}
	if err := s.authorize(ctx, auth.Take, name); err != nil {
		return err
	}
	limited, cancel := s.limited(ctx)
	q, err := s.find(limited, name, first.GetForm(), 0)
	cancel()
	if err != nil {
		return err
	}
	credits := make(chan credit, 1)
	go receive(stream, first, credits) // ends with the stream's context, which ends when this method returns
	if err := s.pump(ctx, stream, q, credits, batch); !errors.Is(err, errStalled) {
		return err
	}
	return s.stall(callOf(ctx).meter)
}

// pump sends IDs for credit until there will be no more credit, or Shutdown.
func (s *Server) pump(ctx context.Context, stream grpc.ServerStream, q request, credits <-chan credit, batch uint64) error {
	if !q.runs {
		batch = min(batch, uint64(maxPiece/(idOctets*q.sequencer.Layout.Bits()/64)-1))
	}
	waits, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.stopped, func() { cancel(context.Cause(s.stopped)) })()
	o := callOf(ctx).meter.newOutbox(cancel)
	defer o.close()
	left := uint64(0)
	for done := false; !done || left > 0; {
		if waits.Err() != nil {
			return context.Cause(waits)
		}
		var more credit
		if left > 0 {
			select {
			case more = <-credits:
			default:
			}
		} else {
			select {
			case more = <-credits:
			case <-waits.Done():
			}
		}
		switch {
		case errors.Is(more.err, io.EOF):
			done = true
		case more.err != nil:
			return more.err
		}
		left += min(more.n, math.MaxUint64-left)
		n := min(batch, left)
		if n == 0 {
			continue
		}
		left -= n
		// Reserve room before taking IDs: IDs that waited would be too old, or lost.
		if err := o.reserve(waits); err != nil {
			return err
		}
		a, err := s.takeAuthorized(ctx, q, int(n))
		if err != nil {
			o.unreserve(maxPiece)
			return err
		}
		for runs := a.Runs; len(runs) > maxRuns; runs = a.Runs {
			a.Runs = runs[maxRuns:]
			if err := stream.SendMsg(o.add(&firnv1.StreamResponse{Runs: runs[:maxRuns]})); err != nil {
				return err
			}
			if err := o.reserve(waits); err != nil {
				return err
			}
		}
		if err := stream.SendMsg(o.add(a)); err != nil {
			return err
		}
	}
	return o.empty(waits)
}

// takeAuthorized takes IDs for a stream, which can outlast the token that began
// it.
func (s *Server) takeAuthorized(ctx context.Context, q request, n int) (*firnv1.StreamResponse, error) {
	if err := s.authorize(ctx, auth.Take, q.name); err != nil {
		return nil, err
	}
	limited, cancel := s.limited(ctx)
	defer cancel()
	return s.take(limited, q, n)
}
