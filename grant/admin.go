package grant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Create creates a sequencer, or creates a destroyed one again, and returns it.
// If it already exists with the same configuration, nothing happens. If it
// exists with another one, the error is a *MismatchError. If it was moved to
// another store, the error matches ErrMoved. A destroyed sequencer keeps its
// layout, so that new IDs never repeat old ones. A layout whose time has ended
// is refused with an error that matches firn.ErrTimeOver. A floor that is later
// than that of an existing sequencer is another configuration.
func Create(ctx context.Context, s Store, name string, c Config, o *AdminOptions) (Info, error) {
	if err := errors.Join(CheckName(name), c.Check()); err != nil {
		return Info{}, err
	}
	opt := *cmp.Or(o, new(AdminOptions))
	now := clockOr(opt.Now)()
	if !inRange(ms(now)) || !inRange(ms(cmp.Or(opt.Floor, now))) {
		return Info{}, fmt.Errorf("grant: sequencer %s: the clock reads %s and the floor is %s, but records have times from %s to %s",
			name, timeText(now), timeText(opt.Floor), timeText(timeOf(-maxTime)), timeText(timeOf(maxTime)))
	}
	return changeConfig(ctx, s, name, func(r *Info) (write bool, err error) {
		fresh := newInfo(name, c)
		fresh.Created, fresh.fence = timeOf(ms(now)), r.fence
		fresh.begin = timeOf(max(ms(r.begin), ms(opt.Floor)))
		if r.Incarnation == 0 || r.State == Purged || r.State == Destroyed {
			if err := c.checkTime(name, now); err != nil {
				return false, err
			}
		}
		switch {
		case r.Incarnation == 0:
			*r = fresh
			return true, nil
		case r.MovedTo != "":
			return false, movedError(name, r.MovedTo)
		case r.State == Purged:
			// Its records stay, as the marks of the node IDs.
		case r.State == Destroyed:
			kept := c
			kept.Layout, kept.Prefix = r.Config.Layout, cmp.Or(r.Config.Prefix, c.Prefix)
			if err := kept.compare(name, c); err != nil {
				return false, err
			}
		case r.State == Destroying:
			return false, fmt.Errorf("%w: %s is being destroyed; finish that first (firn sequencer destroy %s)", ErrDestroyed, name, name)
		default:
			// If the value that was read is lost, so is an unused sequencer. Its
			// range and floor must not be: another generator may have the rest.
			if want, have := c.Nodes.String(), r.Config.Nodes.String(); c.Nodes != nil && want != have {
				return false, &MismatchError{Sequencer: name, Field: "nodes", Want: want, Have: have}
			}
			if r.Floor.Before(fresh.floor()) {
				return false, &MismatchError{Sequencer: name, Field: "floor", Want: timeText(fresh.floor()), Have: timeText(r.Floor)}
			}
			return c.Nodes != nil || !opt.Floor.IsZero(), r.Config.compare(name, c)
		}
		fresh.Incarnation, fresh.LongestWindow = r.Incarnation+1, r.LongestWindow
		fresh.Config.Nodes = cmp.Or(c.Nodes, r.Config.Nodes)
		if c.LowBits == 0 && r.Config.Layout == c.Layout {
			fresh.Config.LowBits = r.Config.LowBits
		}
		fresh.Config.Prefix = cmp.Or(c.Prefix, r.Config.Prefix)
		*r = fresh
		return true, nil
	})
}

// Lookup returns a sequencer. The error is ErrNotFound if it was never created.
func Lookup(ctx context.Context, s Store, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	key := configKey(name)
	value, err := get(ctx, s, key)
	if err != nil {
		return Info{}, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	if value == nil {
		return Info{}, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return decodeConfig(key, value)
}

// Sequencers calls yield for every sequencer of the store, ordered by name,
// until yield returns false. For a record that cannot be read, yield gets the
// name and an error; the iteration continues.
func Sequencers(ctx context.Context, s Store, yield func(name string, info Info, err error) bool) error {
	return s.List(ctx, root, func(key string, value []byte) bool {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, root), "/config")
		if !ok || strings.Contains(name, "/") {
			return true
		}
		info, err := decodeConfig(key, value)
		info.Name = name
		return yield(name, info, err)
	})
}

// Nodes calls yield for every node ID of the sequencer that was ever used, in
// ascending order, until yield returns false. For a record that cannot be read,
// yield gets the node ID and an error.
func Nodes(ctx context.Context, s Store, name string, yield func(n NodeInfo, err error) bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		node, r, err := readNode(name, key, value)
		if err != nil {
			return yield(NodeInfo{Node: node}, err)
		}
		return yield(r.info(node), nil)
	})
}

// LookupNode returns what the store knows about one node ID of a sequencer that
// Lookup found. For a node ID that was never used, it returns a NodeInfo with
// only that number.
func LookupNode(ctx context.Context, s Store, i Info, node uint64) (NodeInfo, error) {
	key := nodeKey(i.Name, node, i.Config.Layout.MaxNode())
	value, err := get(ctx, s, key)
	if err != nil {
		return NodeInfo{}, fmt.Errorf("grant: sequencer %s: node ID %d: %w", i.Name, node, err)
	}
	if value == nil {
		return NodeInfo{Node: node}, nil
	}
	r, err := decodeNode(key, value)
	if err != nil {
		return NodeInfo{Node: node}, err
	}
	return r.info(node), nil
}

// get reads the value of a key. In place of a damaged value, it returns the
// text of the error, as GetMany and List do. No valid record looks like that.
func get(ctx context.Context, s Store, key string) ([]byte, error) {
	value, err := s.Get(ctx, key)
	if errors.Is(err, ErrDamaged) {
		prefix := ErrNotSent.Error() + ": " // the beginning of the texts of GetMany and List
		return []byte(prefix + strings.TrimPrefix(err.Error(), prefix)), nil
	}
	return value, err
}

// changeConfig changes the record of a sequencer, and returns it; r has
// incarnation 0 if there is no record yet. If change returns true, or an earlier
// write had an unknown result, the record is written even if it stays the same,
// because the value that was read may not be durable. If change returns an
// error, nothing is written.
func changeConfig(ctx context.Context, s Store, name string, change func(r *Info) (write bool, err error)) (info Info, err error) {
	var refused error
	err = settle(ctx, s, configKey(name), func(old []byte, lost bool) []byte {
		info = Info{}
		if old != nil {
			if info, refused = decodeConfig(configKey(name), old); refused != nil {
				return nil
			}
		}
		var write bool
		if write, refused = change(&info); refused != nil || !write && !lost {
			return nil
		}
		info.nonce, info.Floor = newToken(), info.floor()
		info.LongestWindow = max(info.LongestWindow, info.Config.Window)
		return info.encode()
	})
	switch {
	case refused != nil:
		return Info{}, refused
	case err != nil:
		return Info{}, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return info, nil
}

// changeExisting is changeConfig for a sequencer that must exist.
func changeExisting(ctx context.Context, s Store, name string, change func(r *Info) (write bool, err error)) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	return changeConfig(ctx, s, name, func(r *Info) (write bool, err error) {
		if r.Incarnation == 0 {
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		return change(r)
	})
}

// changeUsable is changeExisting for a sequencer that this store still has.
func changeUsable(ctx context.Context, s Store, name string, change func(r *Info) (write bool, err error)) (Info, error) {
	return changeExisting(ctx, s, name, func(r *Info) (write bool, err error) {
		switch {
		case r.MovedTo != "":
			return false, movedError(name, r.MovedTo)
		case r.State >= Destroying:
			return false, fmt.Errorf("%w: %s is %v; create it again to use it", ErrDestroyed, name, r.State)
		}
		return change(r)
	})
}

// settle replaces the value of a key by what next makes of it, and repeats that
// until a write was applied. next may be called several times, and returns nil
// to leave the value unchanged; lost reports whether an earlier write had an
// unknown result.
//
// A write with an unknown result is settled by another write, not by a read,
// because a value that was read may disappear in a failover of the store. So
// every write has different bytes, and settle returns only when one was
// applied, or when several in a row had an unknown result.
func settle(ctx context.Context, s Store, key string, next func(old []byte, lost bool) []byte) error {
	var lost error // of the last write with an unknown result
	for unknown := 0; ; {
		old, err := get(ctx, s, key)
		if err != nil {
			return err
		}
		value := next(old, lost != nil)
		if value == nil {
			return nil
		}
		applied, err := s.CAS(ctx, key, old, value)
		switch {
		case err == nil && applied:
			return nil
		case err == nil:
			continue // another process was faster
		case !errors.Is(err, ErrNotSent):
			lost = err
		case lost == nil:
			return err
		}
		if unknown++; unknown == settleTry {
			return fmt.Errorf("the result of %d writes is unknown; try again: %w", unknown, lost)
		}
		select {
		case <-time.After(time.Duration(unknown) * 100 * time.Millisecond):
		case <-ctx.Done():
			return lost
		}
	}
}

// settleTry is the maximum number of writes with an unknown result that settle
// makes.
const settleTry = 5

func newToken() string { return fmt.Sprintf("%016x%016x", random(), random()) }

// AdminOptions configure the operations on a whole sequencer. Nil and the zero
// AdminOptions mean the defaults.
type AdminOptions struct {
	// Now is the clock; nil means the system clock.
	Now func() time.Time

	// Floor is a time before which a sequencer that Create creates makes no IDs,
	// such as that of another generator's last ID; the zero time means none.
	Floor time.Time

	// Waiting is called with the node IDs whose windows have not yet ended,
	// whenever that list changes. It may be nil.
	Waiting func([]NodeInfo)
}

// clockOr returns now, or the system clock if it is nil.
func clockOr(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// Attach makes a detached sequencer usable again.
func Attach(ctx context.Context, s Store, name string) (Info, error) {
	return changeUsable(ctx, s, name, func(r *Info) (write bool, err error) {
		r.State = Attached // even if it already was
		return true, nil
	})
}

// Detach makes all members of a sequencer give their node IDs back, and
// prevents them from acquiring new ones until Attach. It returns when all
// windows have been given back or have ended. If it is interrupted, call it
// again to continue.
func Detach(ctx context.Context, s Store, name string, o *AdminOptions) (Info, error) {
	return empty(ctx, s, name, Detaching, Detached, o)
}

// Destroy makes all members of a sequencer give their node IDs back, for good.
// IDs that were handed out stay unique: the records are kept, and a sequencer
// created again under the same name continues after them. Destroy returns when
// all windows have been given back or have ended. If it is interrupted, call it
// again to continue.
func Destroy(ctx context.Context, s Store, name string, o *AdminOptions) (Info, error) {
	return empty(ctx, s, name, Destroying, Destroyed, o)
}

// Purge allows a destroyed sequencer to be created again with another layout.
// That gives up uniqueness between the old and the new IDs: another layout
// divides the bits differently, so both may contain the same numbers.
func Purge(ctx context.Context, s Store, name string) (Info, error) {
	return changeExisting(ctx, s, name, func(r *Info) (write bool, err error) {
		if r.State != Destroyed && r.State != Purged {
			return false, fmt.Errorf("grant: sequencer %s is %v: destroy it before you purge it", name, r.State)
		}
		r.State = Purged
		return true, nil
	})
}

// SetWindow changes how long the windows of a sequencer are, with one write,
// while its members run. They read it within 20 seconds, and use it from their
// next renewal on. Windows that were granted before keep their end. Its layout
// and MaxAhead never change: IDs of another layout may equal earlier ones, and a
// fence relies on MaxAhead.
func SetWindow(ctx context.Context, s Store, name string, window time.Duration) (Info, error) {
	return changeUsable(ctx, s, name, func(r *Info) (write bool, err error) {
		write = r.Config.Window != window
		r.Config.Window = window // changeConfig raises LongestWindow in the same write
		return write, r.Config.Check()
	})
}

// SetNodes changes the node IDs that members of a sequencer may take in this
// store; nil means all of the layout. To widen them takes one write. To narrow
// them, it makes the members that hold others give these back, as Detach
// does, and returns when all their windows have been given back or have ended:
// only then may another store use them. If it is interrupted, call it again to
// continue. It is independent of the ranges that members were opened with.
func SetNodes(ctx context.Context, s Store, name string, nodes *Range, o *AdminOptions) (Info, error) {
	done := newEmptying()
	done.only = nodes
	return repeat(ctx, o, func(now time.Time) (info Info, waiting []NodeInfo, finished bool, err error) {
		info, err = changeUsable(ctx, s, name, func(r *Info) (write bool, err error) {
			switch have := r.Config.Nodes.String(); {
			case done.begun != "" && have != nodes.String():
				return false, fmt.Errorf("grant: sequencer %s was given the node IDs %s in the meantime, not %v: call it again to change them", name, have, nodes)
			case r.nonce == done.begun:
				return false, nil
			default:
				r.Config.Nodes = nodes // even if they are the same: see emptyStep
				return true, nodes.Check(r.Config.Layout)
			}
		})
		if err != nil || nodes == nil {
			return info, nil, true, err
		}
		waiting, finished, err = done.ended(ctx, s, info, ms(now))
		return info, waiting, finished, err
	})
}

// empty moves a sequencer through a state in which its windows end to a last
// state.
func empty(ctx context.Context, s Store, name string, through, last State, o *AdminOptions) (Info, error) {
	done := newEmptying()
	return repeat(ctx, o, func(now time.Time) (Info, []NodeInfo, bool, error) {
		info, waiting, err := emptyStep(ctx, s, name, through, last, done, now)
		return info, waiting, info.State > through, err // the last one, or beyond
	})
}

// repeat calls step until it is finished, and tells o for which node IDs it
// waits.
func repeat(ctx context.Context, o *AdminOptions, step func(now time.Time) (info Info, waiting []NodeInfo, finished bool, err error)) (Info, error) {
	opt := *cmp.Or(o, new(AdminOptions))
	var shown []uint64 // node IDs last passed to Waiting
	contested := 0     // consecutive steps that other operators undid
	var was Info
	for {
		begun := time.Now()
		info, waiting, finished, err := step(clockOr(opt.Now)())
		if errors.Is(err, errContested) {
			err = nil
		}
		switch {
		case err != nil && (ctx.Err() == nil || shown == nil):
			return info, err
		case err != nil:
			return info, stopped(ctx, was, shown)
		case finished:
			return info, nil
		}
		was = info
		nodes := make([]uint64, len(waiting))
		for i, w := range waiting {
			nodes[i] = w.Node
		}
		if opt.Waiting != nil && !slices.Equal(nodes, shown) {
			opt.Waiting(waiting)
		}
		shown = nodes
		wait := pollEvery
		if len(waiting) > 0 {
			contested = 0
		} else {
			// Another operator is changing the sequencer. Two that start over
			// at the same pace would undo each other's steps forever: each
			// waits for a random time, so that one of them can complete a step.
			wait = time.Duration(random() % uint64(max(wait, time.Since(begun))<<min(contested, contestedMost)))
			contested++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return info, stopped(ctx, was, shown)
		}
	}
}

// pollEvery is the interval at which windows are checked while waiting for
// their end.
const pollEvery = 250 * time.Millisecond

// errContested is returned if another process has written a record since it was
// read.
var errContested = errors.New("grant: another process was faster")

// contestedMost is how often the wait after a contested step doubles.
const contestedMost = 5

// stopped returns the error of an interrupted operation: the state of the
// sequencer, and what the operation was waiting for.
func stopped(ctx context.Context, i Info, nodes []uint64) error {
	name, state := i.Name, i.State
	if len(nodes) == 0 {
		return fmt.Errorf("grant: sequencer %s is %v, and another process is changing it; call it again to continue: %w",
			name, state, context.Cause(ctx))
	}
	return fmt.Errorf("grant: sequencer %s is %v, waiting for the windows of %d node IDs, such as %v; call it again to continue: %w",
		name, state, len(nodes), nodes[:min(len(nodes), 8)], context.Cause(ctx))
}

// emptyStep does what can be done now: it changes the state, prevents every
// window from growing and, once all have ended, sets the last state.
func emptyStep(ctx context.Context, s Store, name string, through, last State, done *emptying, now time.Time) (Info, []NodeInfo, error) {
	info, err := changeExisting(ctx, s, name, func(r *Info) (write bool, err error) {
		switch {
		case r.State >= Destroying && last == Detached:
			return false, fmt.Errorf("%w: %s is %v", ErrDestroyed, name, r.State)
		case done.begun != "" && r.State < through:
			return false, undone(name, last)
		case r.State == last || r.State == Purged:
			return true, nil
		case r.nonce == done.begun:
			return false, nil
		}
		// Written even if the state was set already: only a List after a write
		// of our own shows every record, because an earlier one may be answered
		// by a server that was replaced.
		r.State = through
		return true, nil
	})
	if err != nil || info.State != through {
		return info, nil, err
	}
	waiting, ended, err := done.ended(ctx, s, info, ms(now))
	if !ended {
		return info, waiting, err
	}
	// The records were read after the configuration had this nonce. With
	// another one, it may describe the same state: if the sequencer was attached
	// and detached again in between, members hold node IDs that were not closed.
	// Then the step starts over.
	nonce, err := rewrite(ctx, s, name, done.begun, func(r *Info) { r.State = last })
	if nonce != "" {
		info.State = last
	}
	return info, nil, err
}

// undone returns the error if another process made a sequencer usable again
// while it was being detached or destroyed. That was intentional, so the
// operation does not start over: it could destroy the new sequencer.
func undone(name string, last State) error {
	if last == Destroyed {
		return fmt.Errorf("grant: sequencer %s was destroyed and created again in the meantime; the new one is unchanged: call it again to destroy it", name)
	}
	return fmt.Errorf("grant: sequencer %s was attached again in the meantime and stays attached: call it again to detach it", name)
}

// rewrite changes a configuration, and its nonce, if it still has the given one.
// It returns the nonce of what it wrote, or "" if the configuration has another.
func rewrite(ctx context.Context, s Store, name, nonce string, change func(*Info)) (next string, err error) {
	ours := []string{nonce}
	err = settle(ctx, s, configKey(name), func(old []byte, _ bool) []byte {
		r, err := decodeConfig(configKey(name), old)
		if err != nil || !slices.Contains(ours, r.nonce) {
			next = ""
			return nil
		}
		change(&r)
		next = newToken()
		r.nonce = next
		ours = append(ours, next)
		return r.encode()
	})
	if err != nil {
		return "", fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return next, nil
}

// An emptying holds what one call of Destroy, Detach or SetNodes has written
// and what was applied.
type emptying struct {
	only    *Range               // node IDs outside of it are closed; nil: all
	begun   string               // the nonce of the configuration
	records map[string][]byte    // the records of node IDs, by key
	sure    map[string]bool      // keys of records that were there after begun was written
	damaged map[uint64]time.Time // when damaged records were found
}

func newEmptying() *emptying {
	return &emptying{records: make(map[string][]byte), damaged: make(map[uint64]time.Time)}
}

// ended closes windows, and reports whether all had ended when the configuration
// was the given one, or begun if that is newer. Otherwise it returns those that
// it waits for.
func (c *emptying) ended(ctx context.Context, s Store, i Info, now int64) (waiting []NodeInfo, ended bool, err error) {
	if i.nonce != c.begun {
		// Members may have acquired node IDs since the last step.
		c.begun, c.sure = i.nonce, make(map[string]bool)
	}
	waiting, free, err := c.windows(ctx, s, i, now)
	if err != nil || len(waiting) > 0 {
		return waiting, false, err
	}
	if len(free) > 0 {
		// The values read for these may be lost. A value that is read both
		// before and after an applied write is durable, because it was there at
		// that write.
		next, err := rewrite(ctx, s, i.Name, c.begun, func(*Info) {})
		if next == "" {
			return nil, false, err
		}
		c.begun = next
		waiting, again, err := c.windows(ctx, s, i, now)
		if err != nil || len(waiting) > 0 || !maps.EqualFunc(free, again, bytes.Equal) {
			return waiting, false, err
		}
	}
	return nil, true, nil
}

// windows rewrites the record of every held node ID, so that its owner can no
// longer extend it, and returns those whose windows have not ended. It also
// closes windows that have ended, because their owners could open them again,
// and records that another operator has closed, because the value read may not
// be durable. It returns by key the records that are free, except those freed
// by an owner that found what windows wrote.
func (c *emptying) windows(ctx context.Context, s Store, i Info, now int64) (waiting []NodeInfo, free map[string][]byte, err error) {
	free = make(map[string][]byte)
	again := false
	// How long a window lasts after its last renewal.
	longest := (i.Config.MaxAhead + i.LongestWindow).Milliseconds()
	keeps := func(node uint64) bool { return c.only != nil && c.only.has(node) }
	worn := func(node uint64) {
		if keeps(node) {
			return
		}
		// Its owner cannot extend it, but may use the rest of its window.
		if c.damaged[node].IsZero() {
			c.damaged[node] = time.Now()
		}
		if time.Since(c.damaged[node]).Milliseconds() <= longest {
			waiting = append(waiting, NodeInfo{Node: node})
		}
	}
	err = eachNode(ctx, s, i.Name, worn, func(node uint64, key string, value []byte, r nodeRecord) error {
		ours, _ := decodeNode(key, c.records[key])
		switch {
		case keeps(node):
			return nil
		case r.takenAway() && max(now-r.Wall, r.Wall-now) <= longest:
			waiting = append(waiting, r.info(node)) // its owner may not know yet
			return nil
		case !r.held():
			if !c.sure[key] || ours.Owner != r.Owner {
				free[key] = value
			}
			return nil
		case r.Until >= now:
			waiting = append(waiting, r.info(node))
		}
		if bytes.Equal(value, c.records[key]) {
			c.sure[key] = true
			return nil
		}
		r.State, r.Nonce = nodeClosing, newToken()
		next := r.encode()
		switch applied, err := s.CAS(ctx, key, value, next); {
		case err != nil:
			return err
		case applied:
			c.records[key], c.sure[key] = next, true
		default:
			again = true // its owner was faster
		}
		return nil
	})
	if err == nil && again {
		err = errContested
	}
	return waiting, free, err
}

// eachNode calls visit for every record of a node ID, or worn if the record is
// damaged. It reads all records first, so that visit may use the store.
func eachNode(ctx context.Context, s Store, name string, worn func(node uint64), visit func(node uint64, key string, value []byte, r nodeRecord) error) error {
	type entry struct {
		key   string
		value []byte
	}
	var entries []entry
	err := s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		entries = append(entries, entry{key, bytes.Clone(value)})
		return true
	})
	if err != nil {
		return fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	for _, e := range entries {
		node, r, err := readNode(name, e.key, e.value)
		if errors.Is(err, ErrDamaged) {
			worn(node)
			continue
		}
		if err != nil {
			return err
		}
		if err := visit(node, e.key, e.value, r); err != nil {
			return fmt.Errorf("grant: sequencer %s: node ID %d: %w", name, node, err)
		}
	}
	return nil
}
