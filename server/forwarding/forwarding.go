// Package forwarding lets a server that holds no node number answer all the same: it
// asks one that does.
//
// The caller's rights are checked by the server that it has asked. A call is forwarded
// once: the server that gets it answers it or fails.
package forwarding

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/httpapi"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/rpcapi"
)

// A Backend is a Cluster whose sequencers are asked of other servers where this one has
// no node number for them. It must be made by New, and is safe for use by many
// goroutines at once.
type Backend struct {
	*httpapi.Cluster
	f    *rpcapi.Forwarder
	self func() string // this server's ID as a member
	log  *slog.Logger

	forwarded, failed atomic.Uint64
	some              atomic.Bool  // there was an absence
	warned            atomic.Int64 // when the log was last told that others do not help, in nanoseconds of Unix

	mu   sync.Mutex // guards what follows
	away map[string]absence
	list []members.Member
	read time.Time // when list was

	seenAnswered, seenFailed uint64    // what Forwarded said when helped was last asked
	helpedAt                 time.Time // when helped last saw that a call was answered
}

// An absence is a sequencer that this server had no number for.
type absence struct {
	layout firn.Layout
	until  time.Time // when it is tried again
	err    error
}

const (
	retry   = 2 * time.Second // how long it is not tried to have a number
	fresh   = 2 * time.Second // how long a list of members is good
	targets = 3               // how many servers are asked for one call
	mostOut = 10_000          // names that are remembered
)

// New makes a Backend over a Cluster of this configuration, whose Wrap and Elsewhere it sets. self
// returns this server's ID as a member, which is not asked.
func New(c httpapi.ClusterConfig, f *rpcapi.Forwarder, self func() string) *Backend {
	b := &Backend{f: f, self: self, log: c.Config.Logger, away: make(map[string]absence)}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	c.Wrap, c.Elsewhere = b.orElsewhere, b.helped
	b.Cluster = httpapi.NewCluster(c)
	return b
}

// Forwarded is how many calls were answered by others, and how many by nobody.
func (b *Backend) Forwarded() (answered, failed uint64) {
	return b.forwarded.Load(), b.failed.Load()
}

// Sequencer returns the sequencer of a name: this server's, or that of another one.
func (b *Backend) Sequencer(ctx context.Context, name string) (httpapi.Sequencer, error) {
	here := rpcapi.Forwarded(ctx)
	if !here && b.some.Load() {
		b.mu.Lock()
		a, ok := b.away[name]
		b.mu.Unlock()
		if ok && time.Now().Before(a.until) {
			return b.elsewhere(name, a), nil
		}
	}
	s, err := b.Cluster.Sequencer(ctx, name)
	if err == nil || here || !errors.Is(err, grant.ErrNodesExhausted) {
		return s, err
	}
	info, lookup := b.Lookup(ctx, name)
	if lookup != nil {
		return s, err
	}
	a := absence{info.Config.Layout, time.Now().Add(retry), err}
	name = strings.Clone(name)
	b.mu.Lock()
	if len(b.away) >= mostOut {
		clear(b.away)
	}
	b.away[name] = a
	b.mu.Unlock()
	b.some.Store(true)
	return b.elsewhere(name, a), nil
}

// elsewhere is a sequencer that only others have.
func (b *Backend) elsewhere(name string, a absence) httpapi.Sequencer {
	if a.layout.Bits() == 128 {
		return httpapi.Sequencer{Layout: a.layout, Source128: source128{b, name, a}}
	}
	return httpapi.Sequencer{Layout: a.layout, Source: source{b, name, a}}
}

type source struct {
	b    *Backend
	name string
	a    absence
}

func (s source) NextBatch(ctx context.Context, n int) (firn.Batch, error) {
	return ask(ctx, s.b, s.name, s.a.err, func(t rpcapi.Target) (firn.Batch, error) {
		return s.b.f.Forward(ctx, t, s.name, s.a.layout, n)
	})
}

type source128 source

func (s source128) NextBatch(ctx context.Context, n int) (firn.Batch128, error) {
	return ask(ctx, s.b, s.name, s.a.err, func(t rpcapi.Target) (firn.Batch128, error) {
		return s.b.f.Forward128(ctx, t, s.name, s.a.layout, n)
	})
}

// orElsewhere is a sequencer of this server's that others have too, should it lose its
// number. It is this server's alone for calls that another one has forwarded.
func (b *Backend) orElsewhere(name string, s httpapi.Sequencer) httpapi.Sequencer {
	a := absence{layout: s.Layout}
	if s.Source != nil {
		s.Source = both[firn.ID]{s.Source, func(err error) firn.Source { a.err = err; return source{b, name, a} }}
	}
	if s.Source128 != nil {
		s.Source128 = both[firn.ID128]{s.Source128, func(err error) firn.Source128 { a.err = err; return source128{b, name, a} }}
	}
	return s
}

type both[I firn.AnyID[I]] struct {
	here  firn.SourceOf[I]
	there func(error) firn.SourceOf[I]
}

func (s both[I]) NextBatch(ctx context.Context, n int) (firn.BatchOf[I], error) {
	batch, err := s.here.NextBatch(ctx, n)
	if errors.Is(err, grant.ErrNodesExhausted) && !rpcapi.Forwarded(ctx) {
		return s.there(err).NextBatch(ctx, n)
	}
	return batch, err
}

// TryNext is that of this server, for one ID that is free.
func (s both[I]) TryNext() (I, error) {
	return s.here.(interface{ TryNext() (I, error) }).TryNext()
}

// ask asks servers that may have a number, one after the other, while they do not answer.
func ask[I firn.AnyID[I]](ctx context.Context, b *Backend, name string, why error, forward func(rpcapi.Target) (firn.BatchOf[I], error)) (batch firn.BatchOf[I], err error) {
	if ctx.Err() != nil {
		return batch, ctx.Err() // it was only seen whether there is one without waiting
	}
	all, err := b.candidates(ctx, name)
	if err != nil {
		b.failed.Add(1)
		return batch, err
	}
	err = why // with nobody to ask
	for _, m := range all[:min(targets, len(all))] {
		batch, err = forward(rpcapi.Target{Address: m.Address, TLS: m.TLS})
		if err == nil {
			b.forwarded.Add(1)
			return batch, nil
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, rpcapi.ErrUnreachable), errors.Is(err, grant.ErrNodesExhausted):
			continue
		case ofTheHop(err):
			// Who asks this server has done nothing wrong: what it lacks is a number.
			b.warn(name, m.Address, err)
			err = why
			continue
		}
		break
	}
	b.failed.Add(1)
	return batch, err
}

// ofTheHop reports whether an error says nothing of the sequencer: the other server does
// not know this one, or is not well.
func ofTheHop(err error) bool {
	var e *rpcapi.ForwardError
	if errors.As(err, &e) {
		return errors.Unwrap(e) == nil
	}
	return !errors.Is(err, sequencer.ErrClosed)
}

// warnEvery is how often the log is told that others do not help, at most.
const warnEvery = 10 * time.Second

func (b *Backend) warn(name, address string, err error) {
	now, last := time.Now().UnixNano(), b.warned.Load()
	if now-last < int64(warnEvery) || !b.warned.CompareAndSwap(last, now) {
		return
	}
	b.log.Warn("this server has no node number, and one that was asked does not help", "sequencer", name, "server", address, "error", err,
		"hint", "servers ask each other with --member-token, or with certificates of one authority")
}

// candidates are the servers to ask, by chance, those that say that they have a number
// for the name first.
func (b *Backend) candidates(ctx context.Context, name string) ([]members.Member, error) {
	b.mu.Lock()
	list, read := b.list, b.read
	b.mu.Unlock()
	if now := time.Now(); now.Sub(read) > fresh {
		var err error
		if list, err = b.Members(ctx); err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.list, b.read = list, now
		b.mu.Unlock()
	}
	self := b.self()
	var all []members.Member
	for _, m := range list {
		if m.Address != "" && m.ID != self {
			all = append(all, m)
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	has := func(m members.Member) int {
		if lists(m, name) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(x, y members.Member) int { return cmp.Compare(has(x), has(y)) })
	return all, nil
}

// forwardedLately is how long a call that another server has answered says that it can be
// asked: longer than servers take to write what they hold.
const forwardedLately = 15 * time.Second

// helped reports whether another server of the store can be asked for IDs of a sequencer.
// One was where calls were forwarded and answered a while ago, and none has failed since;
// else it is one that says where it is and that it has a node number, or has more than it
// can list. What servers say of themselves is some seconds old.
func (b *Backend) helped(ctx context.Context, name string) bool {
	now := time.Now()
	answered, failed := b.Forwarded()
	b.mu.Lock()
	switch {
	case answered > b.seenAnswered:
		b.helpedAt = now
	case failed > b.seenFailed:
		b.helpedAt = time.Time{}
	}
	b.seenAnswered, b.seenFailed = answered, failed
	recent := !b.helpedAt.IsZero() && now.Sub(b.helpedAt) < forwardedLately
	b.mu.Unlock()
	if recent {
		return true
	}
	all, err := b.candidates(ctx, name)
	return err == nil && slices.ContainsFunc(all, func(m members.Member) bool {
		return len(m.Holds) >= members.MaxHeld || lists(m, name)
	})
}

// lists reports whether a server says that it has a node number of a sequencer.
func lists(m members.Member, name string) bool {
	return slices.ContainsFunc(m.Holds, func(h members.Held) bool { return h.Sequencer == name })
}
