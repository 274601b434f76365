package forwarding

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// errRejected is matched by errors for IDs from another server that are not
// passed on.
var errRejected = errors.New("IDs of another server rejected")

func reject(format string, a ...any) error {
	return fmt.Errorf("%w: %w", errRejected, fmt.Errorf(format, a...))
}

// An origin is where IDs come from: the node ID that made them, and the first
// and last ticks of their times.
type origin struct {
	node        uint64
	first, last time.Time
}

// originOf decomposes packed IDs. They must have one node ID and ascend, so
// that none is repeated.
func originOf(l *firn.Layout, packed []byte) (o origin, err error) {
	var before firn.Parts
	for size, rest := l.Bits()/8, packed; len(rest) > 0; rest = rest[size:] {
		var p firn.Parts
		if size == 16 {
			p, err = l.Decompose128(firn.ID128(rest[:size]))
		} else {
			p, err = l.Decompose(firn.ID(binary.BigEndian.Uint64(rest)))
		}
		switch {
		case err != nil:
			return o, reject("ID %x: %v", rest[:size], err)
		case len(rest) == len(packed):
			o.node, o.first = p.Node, p.Time
		case p.Node != o.node:
			return o, reject("they have the node IDs %d and %d", o.node, p.Node)
		case p.Time.Before(before.Time) || p.Time.Equal(before.Time) && p.Seq <= before.Seq:
			return o, reject("ID %x does not follow the one before it", rest[:size])
		}
		before = p
	}
	o.last = before.Time
	return o, nil
}

// maxWindows is how many records of node IDs are cached.
const maxWindows = 10_000

// windows is a cache of what this server's store says about the node IDs of
// others. It is safe for concurrent use.
type windows struct {
	store  grant.Store
	lookup func(ctx context.Context, name string) (grant.Info, error)

	mu    sync.Mutex // guards the fields below
	known map[numbered]heldWindow
}

// A numbered is a node ID of a sequencer.
type numbered struct {
	name string
	node uint64
}

// A heldWindow is the use of a node ID by one owner up to a mark.
type heldWindow struct {
	config grant.Config
	owner  string
	until  time.Time
}

func newWindows(s grant.Store, lookup func(ctx context.Context, name string) (grant.Info, error)) *windows {
	return &windows{store: s, lookup: lookup, known: make(map[numbered]heldWindow)}
}

// check returns nil if IDs that an owner is said to have made between sent and
// got can be its own: the store has granted it the node ID for a window that
// contains them, and their times are near this server's clock. No other owner
// has IDs in that window, whichever store the other server uses: see
// docs/protocol.md.
func (w *windows) check(ctx context.Context, name string, l firn.Layout, owner string, o origin, sent,
	got time.Time) error {
	key := numbered{name, o.node}
	w.mu.Lock()
	have, known := w.known[key]
	w.mu.Unlock()
	if !known || have.judge(l, owner, o, sent, got) != nil {
		var err error
		if have, err = w.read(ctx, key); err != nil {
			return err
		}
	}
	return have.judge(l, owner, o, sent, got)
}

// errUnchecked is matched by errors for IDs that could not be checked because
// the store did not answer. They match firn.ErrUnavailable too.
var errUnchecked = fmt.Errorf("%w: the IDs of another server could not be checked", firn.ErrUnavailable)

// read reads a record from the store.
func (w *windows) read(ctx context.Context, key numbered) (have heldWindow, err error) {
	i, err := w.lookup(ctx, key.name)
	switch {
	case errors.Is(err, firn.ErrUnavailable):
		return have, fmt.Errorf("%w: %w", errUnchecked, err)
	case err != nil:
		return have, reject("in this server's store: %w", err)
	}
	n, err := grant.LookupNode(ctx, w.store, i, key.node)
	switch {
	case errors.Is(err, grant.ErrDamaged), errors.Is(err, grant.ErrNewerVersion):
		return have, reject("in this server's store: %w", err)
	case err != nil:
		return have, fmt.Errorf("%w: %w", errUnchecked, err)
	}
	have = heldWindow{config: i.Config}
	if n.Held {
		have.owner, have.until = n.Owner, n.Until
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known) >= maxWindows {
		clear(w.known)
	}
	key.name = strings.Clone(key.name)
	w.known[key] = have
	return have, nil
}

// judge is check for a record of the store.
func (w heldWindow) judge(l firn.Layout, owner string, o origin, sent, got time.Time) error {
	unit := l.Unit()
	switch earliest, latest := sent.Add(-grant.MaxSkew-unit), got.Add(grant.MaxSkew+unit+w.config.MaxAhead); {
	case !w.config.Layout.SameIDs(l):
		return reject("the sequencer has layout %s, not %s", w.config.Layout, l)
	case owner == "" || owner != w.owner:
		return reject("in this server's store, node ID %d is held by %s, not by %s", o.node, ownerText(w.owner),
			ownerText(owner))
	case o.last.Add(unit).After(w.until):
		return reject("they are from %s, but in this server's store the window of node ID %d ends at %s",
			textfmt.Stamp(o.last), o.node, textfmt.Stamp(w.until))
	case o.first.Before(earliest) || o.last.After(latest):
		return reject("they are from %s to %s, but this server's clock reads %s", textfmt.Stamp(o.first),
			textfmt.Stamp(o.last), textfmt.Stamp(got))
	}
	return nil
}

func ownerText(owner string) string {
	if owner == "" {
		return "no owner"
	}
	return "owner " + owner
}
