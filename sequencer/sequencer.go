package sequencer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
)

// Errors of sequencers, beside those of packages grant and firn.
var (
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("sequencer: the sequencer is closed")

	// ErrUnavailable means that the store could not be reached in time. Trying
	// again later may help.
	ErrUnavailable = errors.New("sequencer: the store does not answer")

	// ErrNotYet is what TryNext says where an ID needs an answer of the store
	// first. It was asked; trying again a moment later may help.
	ErrNotYet = errors.New("sequencer: no window is open at this moment")
)

// A Range is the node IDs Lo to Hi, both inclusive.
type Range struct{ Lo, Hi uint64 }

// Config is how a sequencer is opened. The first part is the same for everybody
// who opens it, and fixed when it is created; fields that are zero there take
// what the sequencer has, and what is usual where it is created now. The second
// part is the process's own.
type Config struct {
	// Layout is the layout of the IDs. Zero takes the sequencer's, which must
	// exist then.
	Layout firn.Layout

	// MaxAhead is how far IDs may run ahead of the clock, in whole milliseconds;
	// nil is the layout's.
	MaxAhead *time.Duration

	// Window is how long a node ID is held without a word from the store, in whole
	// milliseconds. Usual are 30 s in a directory, 10 min in Kubernetes and 60 s
	// elsewhere, or longer where the layout asks for it.
	Window time.Duration

	// MustExist keeps Open from creating the sequencer.
	MustExist bool

	// Nodes are the node IDs that this process may take; nil is all of the
	// layout. One number is a pinned one: it is had when nobody else holds it.
	Nodes *Range

	// WaitForNode waits, under each call's context, where no node ID is
	// free. Without it that is grant.ErrNodesExhausted at once.
	WaitForNode bool

	// Detached opens the sequencer without a node ID, until Attach.
	Detached bool

	// AllowClockBehind attaches even where this machine's clock is more than ten
	// seconds behind those of others.
	AllowClockBehind bool

	// AllowClockAhead takes a node ID even where this machine's clock is more
	// than ten seconds ahead of the store's, or of those of others. The number is
	// then blocked for others until the time that this clock shows.
	AllowClockAhead bool

	// Now is the clock; nil is the system's. MaxLag is firn.Options.MaxLag.
	Now    func() time.Time
	MaxLag time.Duration

	// Timeout is how long a request to the store may take; zero is 5 seconds.
	Timeout time.Duration

	// Host is written into the store for people to read; empty is the host's name.
	Host string

	// Logger gets what people should know; nil discards it.
	Logger *slog.Logger
}

// A Phase says what a process has of a sequencer.
type Phase uint8

// The phases of a process.
const (
	Detached  Phase = iota // no node ID, and none wanted
	Attaching              // none yet
	Attached               // IDs can be made
	Losing                 // IDs can be made until the window ends, and another number is wanted
	Detaching              // the number is being given back
	Destroyed              // the sequencer is destroyed
	Closed                 // Close was called
)

var phaseNames = [...]string{"detached", "attaching", "attached", "losing", "detaching", "destroyed", "closed"}

// String is the phase as a word.
func (p Phase) String() string {
	if int(p) >= len(phaseNames) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return phaseNames[p]
}

// A State is what a process has of a sequencer at a moment.
type State struct {
	Phase Phase
	Node  uint64    // of Attached, Losing and Detaching
	Until time.Time // exclusive end of the window; it is renewed as long as IDs are made
	Owner string    // of Attached and Losing: the owner in the node ID's record, see grant.NodeInfo
	Err   error     // what keeps it from going on, or nil
}

// Stats is what a process has done with a sequencer.
type Stats struct {
	firn.Stats
	State  State
	Keeper grant.KeeperStats
}

// A Sequencer makes 64-bit IDs of a named ID space. It is safe for use by many
// goroutines at once. It must be made by Open, and ends with Close.
type Sequencer struct{ member[firn.ID] }

var (
	_ firn.Source    = (*Sequencer)(nil)
	_ firn.Source128 = (*Sequencer128)(nil)
)

// Open opens a sequencer and takes a node ID of it. A nil Config opens one
// that exists, as it is.
//
// It is created where it does not exist and the Config has a layout. Where it
// exists with another configuration, the error is a *grant.MismatchError that
// has both. One that was destroyed is grant.ErrDestroyed: it is created again
// on purpose, with grant.Create. Nothing is written before all that was given
// is checked.
//
// If the context ends first, Open returns at once. It gives a node ID that it
// has claimed back in the background, for at most twice Config.Timeout.
func Open(ctx context.Context, s grant.Store, name string, c *Config) (*Sequencer, error) {
	q := new(Sequencer)
	q.create = func(l firn.Layout, g firn.Grant, o *firn.Options) (generator[firn.ID], error) {
		return firn.NewGenerator(l, g, o)
	}
	if err := q.open(ctx, s, name, c, 64, "Open128"); err != nil {
		return nil, err
	}
	return q, nil
}

// prepare looks the sequencer up or creates it. check says what is wrong with
// its layout.
func (c *Config) prepare(ctx context.Context, s grant.Store, name string, check func(firn.Layout) error) (info grant.Info, err error) {
	if r := c.Nodes; r != nil && r.Lo > r.Hi {
		return info, fmt.Errorf("sequencer: node IDs %d..%d: the first must not be above the last", r.Lo, r.Hi)
	}
	if c.MaxLag < 0 {
		return info, fmt.Errorf("sequencer: MaxLag is %v: it cannot be negative", c.MaxLag)
	}
	var given *grant.Config
	if !c.Layout.IsZero() {
		if err := check(c.Layout); err != nil {
			return info, err
		}
		var window *time.Duration
		if c.Window != 0 {
			window = &c.Window
		}
		g, err := grant.DefaultConfig(s, c.Layout, c.MaxAhead, window)
		if err != nil {
			return info, err
		}
		given = &g
	}
	info, err = grant.Lookup(ctx, s, name)
	switch {
	case given == nil || c.MustExist:
		// As it is.
	case errors.Is(err, grant.ErrNotFound):
		info, err = grant.Create(ctx, s, name, *given, c.now())
		if errors.Is(err, grant.ErrMismatch) {
			info, err = grant.Lookup(ctx, s, name) // another has created it meanwhile
		}
	}
	if err == nil {
		err = c.compare(info)
	}
	if err == nil {
		err = check(info.Config.Layout)
	}
	return info, err
}

// compare says in what the sequencer differs from what was asked for.
func (c *Config) compare(info grant.Info) error {
	switch have := info.Config; {
	case !c.Layout.IsZero() && c.Layout != have.Layout:
		return &grant.MismatchError{Sequencer: info.Name, Field: "layout", Want: c.Layout.String(), Have: have.Layout.String()}
	case c.MaxAhead != nil && *c.MaxAhead != have.MaxAhead:
		return &grant.MismatchError{Sequencer: info.Name, Field: "max-ahead", Want: c.MaxAhead.String(), Have: have.MaxAhead.String()}
	case c.Window != 0 && c.Window != have.Window:
		return &grant.MismatchError{Sequencer: info.Name, Field: "window", Want: c.Window.String(), Have: have.Window.String()}
	}
	return nil
}

func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Destroy destroys a sequencer in the whole cluster; see grant.Destroy.
func Destroy(ctx context.Context, s grant.Store, name string) error {
	_, err := grant.Destroy(ctx, s, name, nil)
	return err
}

// Next makes the next ID. It waits, under the context, as firn.Generator.Next
// does, and where the window must be renewed first. An error that is
// ErrUnavailable says that the store did not answer in time; grant's errors say
// why no node ID can be had.
func (q *Sequencer) Next(ctx context.Context) (firn.ID, error) { return q.next(ctx) }

// TryNext makes the next ID without ever waiting. Beside the errors of
// firn.Generator.TryNext it has ErrNotYet, and those of Next.
func (q *Sequencer) TryNext() (firn.ID, error) { return q.tryNext() }

// Fill fills dst with the next len(dst) IDs, in order, in pieces as they become
// free, across waits and windows. On an error the contents of dst are not to be
// used; the IDs taken for it are lost.
func (q *Sequencer) Fill(ctx context.Context, dst []firn.ID) error { return q.fill(ctx, dst) }

// Reserve takes n consecutive slots at once; see firn.Generator.Reserve. It
// never waits: where the window does not have them it asks for another, and the
// error is ErrNotYet.
func (q *Sequencer) Reserve(n int) (firn.Batch, time.Duration, error) { return q.reserve(n) }

// NextBatch makes the next n IDs at consecutive slots, and waits as Next does;
// see firn.Generator.NextBatch. A batch that no window can hold is
// firn.ErrBatchTooLarge.
func (q *Sequencer) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	return q.nextBatch(ctx, n)
}

// TryNextBatch is NextBatch without ever waiting. Beside the errors of
// firn.Generator.TryNextBatch it has ErrNotYet, and those of Next.
func (q *Sequencer) TryNextBatch(n int) (firn.Batch, error) { return q.tryNextBatch(n) }

// A Sequencer128 is a Sequencer of 128-bit IDs.
type Sequencer128 struct{ member[firn.ID128] }

// Open128 is Open for layouts of 128 bits.
func Open128(ctx context.Context, s grant.Store, name string, c *Config) (*Sequencer128, error) {
	q := new(Sequencer128)
	q.create = func(l firn.Layout, g firn.Grant, o *firn.Options) (generator[firn.ID128], error) {
		return firn.NewGenerator128(l, g, o)
	}
	if err := q.open(ctx, s, name, c, 128, "Open"); err != nil {
		return nil, err
	}
	return q, nil
}

// Next is Sequencer.Next.
func (q *Sequencer128) Next(ctx context.Context) (firn.ID128, error) { return q.next(ctx) }

// TryNext is Sequencer.TryNext.
func (q *Sequencer128) TryNext() (firn.ID128, error) { return q.tryNext() }

// Fill is Sequencer.Fill.
func (q *Sequencer128) Fill(ctx context.Context, dst []firn.ID128) error { return q.fill(ctx, dst) }

// Reserve is Sequencer.Reserve.
func (q *Sequencer128) Reserve(n int) (firn.Batch128, time.Duration, error) { return q.reserve(n) }

// NextBatch is Sequencer.NextBatch.
func (q *Sequencer128) NextBatch(ctx context.Context, n int) (firn.Batch128, error) {
	return q.nextBatch(ctx, n)
}

// TryNextBatch is Sequencer.TryNextBatch.
func (q *Sequencer128) TryNextBatch(n int) (firn.Batch128, error) { return q.tryNextBatch(n) }

// next is Next of either width.
func (m *member[I]) next(ctx context.Context) (id I, err error) {
	if g := m.current.Load(); g != nil {
		if id, err = (*g).Next(ctx); err == nil || !hasEnded(err) {
			return id, err
		}
	}
	err = m.do(ctx, func(g generator[I]) error {
		id, err = g.Next(ctx)
		return err
	})
	return id, err
}

func (m *member[I]) tryNext() (id I, err error) {
	if g := m.current.Load(); g != nil {
		if id, err = (*g).TryNext(); !hasEnded(err) {
			return id, err
		}
	}
	return id, m.notYet()
}

// notYet asks for a window and says why there is none.
func (m *member[I]) notYet() error {
	status, _ := m.keeper.Status()
	m.want()
	if err := m.refused(status); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNotYet, m.name)
}

// atOnce calls try with the generator, for a batch of n IDs that may not wait.
func (m *member[I]) atOnce(n int, try func(generator[I]) error) error {
	if err := m.checkBatch(n); err != nil {
		return err
	}
	if g := m.current.Load(); g != nil {
		if err := try(*g); !hasEnded(err) {
			return err
		}
	}
	return m.notYet()
}

func (m *member[I]) reserve(n int) (b firn.BatchOf[I], hold time.Duration, err error) {
	err = m.atOnce(n, func(g generator[I]) error {
		b, hold, err = g.Reserve(n)
		return err
	})
	return b, hold, err
}

func (m *member[I]) tryNextBatch(n int) (b firn.BatchOf[I], err error) {
	err = m.atOnce(n, func(g generator[I]) error {
		b, err = g.TryNextBatch(n)
		return err
	})
	return b, err
}

func (m *member[I]) nextBatch(ctx context.Context, n int) (b firn.BatchOf[I], err error) {
	if err = m.checkBatch(n); err != nil {
		return b, err
	}
	err = m.do(ctx, func(g generator[I]) error {
		b, err = g.NextBatch(ctx, n)
		return err
	})
	return b, err
}

// fillPiece is how many IDs of a long Fill are taken at once, so that one that
// meets the end of a window has few to take again.
const fillPiece = 4096

// fill fills dst in pieces. A piece that meets the end of a window is taken
// again as a whole: what was taken of it is lost, and order is kept.
func (m *member[I]) fill(ctx context.Context, dst []I) error {
	for len(dst) > 0 {
		piece := dst[:min(len(dst), fillPiece)]
		if err := m.do(ctx, func(g generator[I]) error { return g.Fill(ctx, piece) }); err != nil {
			return err
		}
		dst = dst[len(piece):]
	}
	return nil
}
