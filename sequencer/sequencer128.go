package sequencer

import (
	"context"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// A Sequencer128 is a Sequencer of 128-bit IDs.
type Sequencer128 struct {
	member[*firn.Generator128]
}

// Open128 is Open for layouts of 128 bits.
func Open128(ctx context.Context, s grant.Store, name string, c *Config) (*Sequencer128, error) {
	c, info, err := prepare(ctx, s, name, c, 128)
	if err != nil {
		return nil, err
	}
	q := &Sequencer128{member[*firn.Generator128]{create: firn.NewGenerator128}}
	if err := q.open(ctx, s, info, c); err != nil {
		return nil, err
	}
	return q, nil
}

// Next is Sequencer.Next.
func (q *Sequencer128) Next(ctx context.Context) (id firn.ID128, err error) {
	if g := q.current.Load(); g != nil {
		if id, err = (*g).Next(ctx); err == nil || !hasEnded(err) {
			return id, err
		}
	}
	err = q.do(ctx, func(g *firn.Generator128) error {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// TryNext is Sequencer.TryNext.
func (q *Sequencer128) TryNext() (firn.ID128, error) {
	if g := q.current.Load(); g != nil {
		if id, err := (*g).TryNext(); !hasEnded(err) {
			return id, err
		}
	}
	return firn.ID128{}, q.notYet()
}

// Fill is Sequencer.Fill.
func (q *Sequencer128) Fill(ctx context.Context, dst []firn.ID128) error {
	return fill(ctx, &q.member, dst, (*firn.Generator128).Fill)
}

// Reserve is Sequencer.Reserve.
func (q *Sequencer128) Reserve(n int) (firn.Batch128, time.Duration, error) {
	err := q.checkBatch(n)
	if g := q.current.Load(); g != nil && err == nil {
		if b, hold, err := (*g).Reserve(n); !hasEnded(err) {
			return b, hold, err
		}
	}
	if err == nil {
		err = q.notYet()
	}
	return firn.Batch128{}, 0, err
}

// NextBatch is Sequencer.NextBatch.
func (q *Sequencer128) NextBatch(ctx context.Context, n int) (b firn.Batch128, err error) {
	if err = q.checkBatch(n); err != nil {
		return b, err
	}
	err = q.do(ctx, func(g *firn.Generator128) error {
		b, err = g.NextBatch(ctx, n)
		return err
	})
	return b, err
}

// TryNextBatch is Sequencer.TryNextBatch.
func (q *Sequencer128) TryNextBatch(n int) (firn.Batch128, error) {
	err := q.checkBatch(n)
	if g := q.current.Load(); g != nil && err == nil {
		if b, err := (*g).TryNextBatch(n); !hasEnded(err) {
			return b, err
		}
	}
	if err == nil {
		err = q.notYet()
	}
	return firn.Batch128{}, err
}
