package sequencer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// A Sequencer makes 64-bit IDs of a named ID space. See SequencerOf for its
// methods.
type Sequencer = SequencerOf[firn.ID]

var _ firn.Source = (*Sequencer)(nil)

// A SequencerOf is a Sequencer of 64-bit or 128-bit IDs. It is safe for
// concurrent use by multiple goroutines. It must be made by Open or Open128,
// and ends with Close or Abandon.
type SequencerOf[I firn.AnyID] struct {
	name         string
	config       grant.Config
	waitForNode  bool // if none is free
	options      firn.Options
	newGenerator func(firn.Layout, firn.Grant, *firn.Options) (*firn.GeneratorOf[I], error)
	keeper       *grant.Keeper

	current atomic.Pointer[firn.GeneratorOf[I]] // nil while there is no generator

	mu          sync.Mutex // guards the fields below; held only briefly
	sealedUntil time.Time  // exclusive end of the times that sealed generators used
	sealedStats firn.Stats // of sealed generators
	wanted      bool       // a node ID is: the last call was Join, not Leave
	closed      bool
	unusable    error // why the last grant could not be used
}

// Open opens a sequencer and acquires a node ID of it. With nil Options, it
// opens an existing one with its settings.
//
// If the sequencer does not exist and the Options have a layout, Open creates
// it. If it exists with another configuration, the error matches
// grant.ErrMismatch and contains both. If it was destroyed, the error matches
// grant.ErrDestroyed: create it again explicitly, with grant.Create. If the
// time of the layout has ended or not begun, it matches firn.ErrTimeOver or
// firn.ErrBeforeEpoch. Nothing is written before all arguments are checked.
//
// If the context ends first, Open returns at once. A node ID that it has
// claimed is given back in the background, for at most ten seconds.
func Open(ctx context.Context, s grant.Store, name string, o *Options) (*Sequencer, error) {
	return open(ctx, s, name, o, 64, "Open128", firn.NewGenerator)
}

// Open128 is like Open, for layouts of 128 bits.
func Open128(ctx context.Context, s grant.Store, name string, o *Options) (*SequencerOf[firn.ID128], error) {
	return open(ctx, s, name, o, 128, "Open", firn.NewGenerator128)
}

// checkLayout returns an error if a layout does not suit this process. twin is
// the function for the other width.
func checkLayout(l firn.Layout, o *Options, name string, bits int, twin string) error {
	if err := l.CheckGenerator(); err != nil {
		return err
	}
	if l.Bits() != bits {
		return fmt.Errorf("sequencer: sequencer %s has IDs of %d bits: use %s", name, l.Bits(), twin)
	}
	return o.Nodes.Check(l)
}

// open opens a member of a sequencer and, unless the Options say otherwise,
// joins it. bits and twin are those of checkLayout, and newGenerator makes its
// generators.
func open[I firn.AnyID](ctx context.Context, s grant.Store, name string, o *Options, bits int, twin string,
	newGenerator func(firn.Layout, firn.Grant, *firn.Options) (*firn.GeneratorOf[I], error)) (*SequencerOf[I], error) {
	if s == nil {
		panic("sequencer: Open needs a store")
	}
	q := &SequencerOf[I]{newGenerator: newGenerator}
	o = cmp.Or(o, new(Options))
	info, err := o.lookupOrCreate(ctx, s, name, func(l firn.Layout) error {
		return checkLayout(l, o, name, bits, twin)
	})
	if err != nil {
		return nil, err
	}
	if o.Window != 0 && o.Window != info.Config.Window && o.Logger != nil {
		o.Logger.InfoContext(ctx, "using the sequencer's window, not the configured one",
			"sequencer", name, "window", info.Config.Window, "configured", o.Window)
	}
	q.name, q.config, q.waitForNode = info.Name, info.Config, o.WaitForNode
	q.options = firn.Options{Now: o.Now, MaxAhead: q.config.MaxAhead}
	q.keeper = grant.NewKeeper(s, q.name, &q.config, holder[I]{q}, o.memberOptions())
	if o.Idle {
		return q, nil
	}
	isOpen := false
	defer func() { // deferred, because the context is the caller's and may panic
		if isOpen {
			return
		}
		// A node ID may have been claimed, or a claim may be in progress. The
		// caller may retry with contexts that are too short for this store, so
		// the node ID is given back even if the context has ended.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			// One request in progress, and the one that gives it back.
			late, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = q.Close(late)
		}()
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}()
	if err := q.Join(ctx); err != nil {
		return nil, err
	}
	isOpen = true
	return q, nil
}

// withGenerator calls try with the generator, and again whenever there is
// another window, until its error is not that the window has ended.
func (q *SequencerOf[I]) withGenerator(ctx context.Context, try func(*firn.GeneratorOf[I]) error) error {
	needContext(ctx)
	for {
		// Before the attempt, so that no later change is missed.
		status, changed := q.keeper.Status()
		if current := q.current.Load(); current != nil {
			if err := try(current); !isWindowOver(err) {
				return err
			}
		}
		if refused := q.refusal(status); refused != nil {
			q.requestWindow() // so that changes are noticed soon
			return refused
		}
		if err := q.keeper.Demand(ctx); err != nil {
			return q.gaveUpError(err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return q.gaveUpError(ctx.Err())
		}
	}
}

// refusal returns why waiting for a window does not help, or nil.
func (q *SequencerOf[I]) refusal(status grant.Status) error {
	q.mu.Lock()
	closed, wanted, unusable := q.closed, q.wanted, q.unusable
	q.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("%w: sequencer %s", firn.ErrClosed, q.name)
	case !wanted:
		return fmt.Errorf("%w: %s", ErrNotJoined, q.name)
	case status.Err == nil:
		return unusable
	case errors.Is(status.Err, grant.ErrNodesExhausted) && !q.waitForNode, grant.IsFinal(status.Err):
		return status.Err
	}
	return nil
}

// checkBatch rejects a batch of n IDs that may fit no window. Every window has
// room for the IDs of a tick.
func (q *SequencerOf[I]) checkBatch(n int) error {
	if n < 1 || uint64(n-1) <= q.config.Layout.MaxSeq() {
		return nil // the generator rejects sizes below 1
	}
	return q.checkLongBatch(n)
}

// checkLongBatch is checkBatch for more IDs than those of a tick. A window is
// not renewed for less than a twelfth of its length, so a batch has at most the
// rest.
func (q *SequencerOf[I]) checkLongBatch(n int) error {
	l, window := q.config.Layout, q.Config().Window
	if uint64(n-1)/(l.MaxSeq()+1) < uint64((window-window/12)/l.Unit()) {
		return nil
	}
	return fmt.Errorf("%w: a window of sequencer %s is %v long, and a batch spans no more than 11/12 of it: ask "+
		"for fewer IDs at a time, or use Fill", firn.ErrBatchTooLarge, q.name, window)
}

// needContext panics if ctx is nil, as in package firn.
func needContext(ctx context.Context) {
	if ctx == nil {
		panic("sequencer: the context is nil: pass context.Background() to wait for as long as it takes")
	}
}

// Close gives the node ID back and closes the sequencer. If the context ends
// before the store has recorded that, Close closes the sequencer anyway and
// returns an error: the node ID then becomes free when its window ends. A
// context without a deadline, or one that has already ended, counts as one that
// ends in 5 s, so that of a program that a signal stops will do. Calling Close
// again has no effect.
func (q *SequencerOf[I]) Close(ctx context.Context) error {
	needContext(ctx)
	q.setClosed()
	return q.keeper.Close(ctx)
}

// Abandon closes the sequencer at once, without another request to the store:
// the node ID becomes free when its window ends. A Close in progress ends too.
func (q *SequencerOf[I]) Abandon() {
	q.setClosed()
	q.keeper.Abandon()
}

func (q *SequencerOf[I]) setClosed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.wanted = true, false
}

// isClosed reports whether Close was called.
func (q *SequencerOf[I]) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// requestWindow requests a window, without waiting.
func (q *SequencerOf[I]) requestWindow() { _ = q.keeper.Demand(canceledContext) }

// canceledContext is a context with which a call informs the Keeper, and does
// not wait.
var canceledContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Config returns the configuration that all members of the sequencer share, as
// it was last read.
func (q *SequencerOf[I]) Config() grant.Config {
	if info, ok := q.keeper.Info(); ok {
		return info.Config
	}
	return q.config
}

// Status returns the current status of the sequencer in this process. Its Err
// is what prevents progress, such as firn.ErrClosed or grant.ErrDestroyed; if
// Idle, why the last node ID was not given back.
func (q *SequencerOf[I]) Status() grant.Status {
	status, _ := q.keeper.Status()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return grant.Status{Err: firn.ErrClosed}
	case status.Phase == grant.Idle:
		return status
	case status.Err == nil:
		status.Err = q.unusable
	}
	if status.Phase == grant.Joining || errors.Is(status.Err, grant.ErrDestroyed) {
		return grant.Status{Phase: status.Phase, Err: status.Err}
	}
	return status
}

// Next returns the next ID. It waits, under the context, like
// firn.Generator.Next, and also while the window must be renewed first. If the
// store did not answer in time, the error matches firn.ErrUnavailable; errors
// of package grant explain why no node ID can be acquired.
func (q *SequencerOf[I]) Next(ctx context.Context) (id I, err error) {
	if g := q.current.Load(); g != nil {
		if id, err = g.Next(ctx); err == nil || !isWindowOver(err) {
			return id, err
		}
	}
	err = q.withGenerator(ctx, func(g *firn.GeneratorOf[I]) error {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

// TryNext returns the next ID without waiting. Its errors are those of
// firn.Generator.TryNext and of Next. If an ID first needs an answer of the
// store, TryNext asks the store, and the error matches firn.ErrExhausted, but
// is not a *firn.WaitError. If the last request to the store has failed, the
// error matches firn.ErrUnavailable instead.
func (q *SequencerOf[I]) TryNext() (id I, err error) {
	if g := q.current.Load(); g != nil {
		if id, err = g.TryNext(); !isWindowOver(err) {
			return id, err
		}
	}
	return id, q.noWindow()
}

// noWindow requests a window and returns why there is no open one.
func (q *SequencerOf[I]) noWindow() error {
	status, _ := q.keeper.Status()
	q.requestWindow()
	if err := q.refusal(status); err != nil {
		return err
	}
	switch err := status.Err; {
	case err == nil:
		return fmt.Errorf("%w: no window of sequencer %s is open", firn.ErrExhausted, q.name)
	case errors.Is(err, grant.ErrNodesExhausted), errors.Is(err, grant.ErrComparingClocks): // calls wait until it ends
		return fmt.Errorf("%w: sequencer %s: %w", firn.ErrExhausted, q.name, err)
	default:
		return q.heldUpError(err)
	}
}

// NextBatch returns the next n IDs, at consecutive slots, and waits like Next;
// see firn.Generator.NextBatch. For a batch that spans more than 11/12 of a
// window, the error matches firn.ErrBatchTooLarge.
func (q *SequencerOf[I]) NextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if err = q.checkBatch(n); err != nil {
		return b, err
	}
	err = q.withGenerator(ctx, func(g *firn.GeneratorOf[I]) error {
		b, err = g.NextBatch(ctx, n)
		return err
	})
	return b, err
}

// TryNextBatch is like NextBatch but never waits; see TryNext, and
// firn.Generator.TryNextBatch for the maximum size.
func (q *SequencerOf[I]) TryNextBatch(n int) (b firn.BatchOf[I], err error) {
	if err := q.checkBatch(n); err != nil {
		return b, err
	}
	if g := q.current.Load(); g != nil {
		if b, err = g.TryNextBatch(n); !isWindowOver(err) {
			return b, err
		}
	}
	return b, q.noWindow()
}

// fillPiece is how many IDs of a long Fill are taken at once, so that a piece
// that reaches the end of a window loses few.
const fillPiece = 4096

// Fill fills dst with the next len(dst) IDs, in order, in pieces as they become
// free, across waits and windows. After an error, the contents of dst must not
// be used; the IDs taken so far are lost.
func (q *SequencerOf[I]) Fill(ctx context.Context, dst []I) error {
	needContext(ctx)
	for len(dst) > 0 {
		// A piece that reaches the end of a window is taken again as a whole.
		piece := dst[:min(len(dst), fillPiece)]
		if err := q.withGenerator(ctx, func(g *firn.GeneratorOf[I]) error { return g.Fill(ctx, piece) }); err != nil {
			return err
		}
		dst = dst[len(piece):]
	}
	return nil
}
