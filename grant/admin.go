package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Create creates a sequencer, or creates one again that was destroyed, and
// returns it. If it exists already with this configuration that is fine; with
// another it is a *MismatchError. A sequencer that was destroyed keeps its
// layout, so that its new IDs never repeat the old ones.
func Create(ctx context.Context, s Store, name string, c Config, now time.Time) (Info, error) {
	if err := errors.Join(CheckName(name), c.Check()); err != nil {
		return Info{}, err
	}
	if !inRange(ms(now)) {
		return Info{}, fmt.Errorf("grant: sequencer %s: the clock says %s, and records have times from %s to %s: set the clock",
			name, now.UTC().Format(timeFormat), timeOf(-maxTime).Format(timeFormat), timeOf(maxTime).Format(timeFormat))
	}
	info, _, err := changeConfig(ctx, s, name, func(r *configRecord) (write bool, err error) {
		fresh := newConfigRecord(c)
		fresh.Created = ms(now)
		switch {
		case r.Version == 0:
			*r = fresh
			return true, nil
		case r.State == Purged:
			// Its records stay, as the marks of node IDs.
		case r.State == Destroyed:
			if r.Layout != c.Layout {
				return false, &MismatchError{Sequencer: name, Field: "layout", Want: c.Layout.String(), Have: r.Layout.String()}
			}
		case r.State == Destroying:
			return false, fmt.Errorf("%w: %s is being destroyed; finish that first (firn sequencer destroy %s)", ErrDestroyed, name, name)
		default:
			// Nothing rests on it: if what was read is lost, so is an unused sequencer.
			return false, r.config().compare(name, c)
		}
		fresh.Incarnation, fresh.Floor, fresh.LongestWindow = r.Incarnation+1, r.Floor, r.LongestWindow
		*r = fresh
		return true, nil
	})
	return info, err
}

// Lookup returns a sequencer. If it was never created that is ErrNotFound.
func Lookup(ctx context.Context, s Store, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	r, _, err := getConfig(ctx, s, name)
	if err != nil {
		return Info{}, err
	}
	return r.info(name), nil
}

// Sequencers calls yield for every sequencer of the store, in the order of
// their names, until it returns false. A record that cannot be read is told as
// an error with the name; the others follow all the same.
func Sequencers(ctx context.Context, s Store, yield func(name string, info Info, err error) bool) error {
	return s.List(ctx, root, func(key string, value []byte) bool {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, root), "/config")
		if !ok || strings.Contains(name, "/") {
			return true
		}
		r, err := decodeConfig(key, value)
		if err != nil {
			return yield(name, Info{Name: name}, err)
		}
		return yield(name, r.info(name), nil)
	})
}

// Nodes calls yield for every node ID of the sequencer that was ever used,
// in ascending order, until it returns false. A record that cannot be read is
// told as an error with its number.
func Nodes(ctx context.Context, s Store, name string, yield func(n NodeInfo, err error) bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		node, err := nodeOf(name, key)
		if err != nil {
			return yield(NodeInfo{}, err)
		}
		r, err := decodeNode(key, value)
		if err != nil {
			return yield(NodeInfo{Node: node}, err)
		}
		return yield(r.info(node), nil)
	})
}

// LookupNode returns what the store has of one node ID of a sequencer that
// Lookup found. The zero NodeInfo with that number means that it was never
// used.
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

// get reads the value of a key. In place of one that the store finds damaged it
// returns the text that says so, as GetMany and List do: no record is like that.
func get(ctx context.Context, s Store, key string) ([]byte, error) {
	value, err := s.Get(ctx, key)
	if errors.Is(err, ErrDamaged) {
		prefix := ErrNotSent.Error() + ": " // as the texts of GetMany and List begin
		return []byte(prefix + strings.TrimPrefix(err.Error(), prefix)), nil
	}
	return value, err
}

// getConfig reads the record of a sequencer, and its bytes.
func getConfig(ctx context.Context, s Store, name string) (configRecord, []byte, error) {
	key := configKey(name)
	value, err := get(ctx, s, key)
	if err != nil {
		return configRecord{}, nil, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	if value == nil {
		return configRecord{}, nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	r, err := decodeConfig(key, value)
	return r, value, err
}

// changeConfig changes the record of a sequencer; r has version 0 where there
// is none yet. It returns the record's bytes too. A record that is as it should
// be is written anew all the same where change says so: what was read may not
// be durable. With an error change says to write nothing.
func changeConfig(ctx context.Context, s Store, name string, change func(r *configRecord) (write bool, err error)) (info Info, value []byte, err error) {
	var r configRecord
	var refused error
	err = settle(ctx, s, configKey(name), func(old []byte) []byte {
		r, value = configRecord{}, old
		if old != nil {
			if r, refused = decodeConfig(configKey(name), old); refused != nil {
				return nil
			}
		}
		var write bool
		if write, refused = change(&r); !write {
			return nil
		}
		r.Nonce = newToken()
		r.LongestWindow = max(r.LongestWindow, r.Window)
		value = r.encode()
		return value
	})
	switch {
	case refused != nil:
		return Info{}, nil, refused
	case err != nil:
		return Info{}, nil, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return r.info(name), value, nil
}

// settle replaces the value of a key by what next makes of it, until that was
// applied. next may be called again, and returns nil to leave the value alone.
//
// A write whose result is unknown is settled by another write, and not by a
// read: what a read shows may be gone after a failover of the store. So every
// write has other bytes, and settle returns only when one was applied, or when
// several in a row had no certain result.
func settle(ctx context.Context, s Store, key string, next func(old []byte) []byte) error {
	for unknown := 0; ; {
		old, err := get(ctx, s, key)
		if err != nil {
			return err
		}
		value := next(old)
		if value == nil {
			return nil
		}
		applied, err := s.CAS(ctx, key, old, value)
		switch {
		case err == nil && applied:
			return nil
		case err == nil:
			continue // another was faster
		case errors.Is(err, ErrNotSent):
			return err
		}
		if unknown++; unknown == settleTry {
			return fmt.Errorf("the result of %d writes is unknown; try again: %w", unknown, err)
		}
		select {
		case <-time.After(time.Duration(unknown) * 100 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// settleTry is how many writes of unknown result settle makes.
const settleTry = 5

func newToken() string { return fmt.Sprintf("%016x%016x", random(), random()) }

// AdminOptions are what the operations on a whole sequencer can be told. The
// zero AdminOptions and nil mean the defaults.
type AdminOptions struct {
	// Now is the clock; nil is the system's.
	Now func() time.Time

	// Poll is how often the windows that are waited for are looked at. Zero
	// means a quarter of a second.
	Poll time.Duration

	// Waiting is called with the node IDs that are waited for, whenever
	// these are others than before; it may be nil.
	Waiting func([]NodeInfo)
}

func (o *AdminOptions) orDefault() AdminOptions {
	var v AdminOptions
	if o != nil {
		v = *o
	}
	if v.Now == nil {
		v.Now = time.Now
	}
	if v.Poll <= 0 {
		v.Poll = 250 * time.Millisecond
	}
	return v
}

// AttachAll makes a sequencer usable again that was detached.
func AttachAll(ctx context.Context, s Store, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	info, _, err := changeConfig(ctx, s, name, func(r *configRecord) (write bool, err error) {
		switch {
		case r.Version == 0:
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		case r.State >= Destroying:
			return false, fmt.Errorf("%w: %s is %v; create it again to use it", ErrDestroyed, name, r.State)
		}
		r.State = Attached // also if it was
		return true, nil
	})
	return info, err
}

// DetachAll has all members of a sequencer give their node IDs back, and
// keeps them from acquiring others until AttachAll. It returns when all windows
// are given back or over. If it is stopped before, calling it again goes on.
func DetachAll(ctx context.Context, s Store, name string, o *AdminOptions) (Info, error) {
	return empty(ctx, s, name, Detaching, Detached, o)
}

// Destroy has all members of a sequencer give their node IDs back, for
// good. IDs that were handed out stay unique: its records are kept, and a
// sequencer that is created again under the name goes on from them. It returns
// when all windows are given back or over. If it is stopped before, calling it
// again goes on.
func Destroy(ctx context.Context, s Store, name string, o *AdminOptions) (Info, error) {
	return empty(ctx, s, name, Destroying, Destroyed, o)
}

// Upgrade has the records of a sequencer written in the newest version that
// this program knows. Members of older programs do not understand it: they
// acquire nothing, but renew what they hold for as long as they run, by the
// rules of their release. What a fence reckons with does not hold for them, so
// all members are upgraded first.
func Upgrade(ctx context.Context, s Store, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	info, _, err := changeConfig(ctx, s, name, func(r *configRecord) (write bool, err error) {
		switch {
		case r.Version == 0:
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		}
		r.Version = version // also if it was
		return true, nil
	})
	return info, err
}

// Purge lets a destroyed sequencer be created again with another layout. What
// it gives up is uniqueness between the IDs of its old life and its new one:
// another layout cuts the bits in other ways, so the numbers can be the same.
func Purge(ctx context.Context, s Store, name string) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	info, _, err := changeConfig(ctx, s, name, func(r *configRecord) (write bool, err error) {
		switch {
		case r.Version == 0:
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		case r.State == Purged:
			return true, nil
		case r.State != Destroyed:
			return false, fmt.Errorf("grant: sequencer %s is %v: destroy it before it is purged", name, r.State)
		}
		r.State = Purged
		return true, nil
	})
	return info, err
}

// empty takes a sequencer through a state in which its windows end to a last
// one.
func empty(ctx context.Context, s Store, name string, through, last State, o *AdminOptions) (Info, error) {
	if err := CheckName(name); err != nil {
		return Info{}, err
	}
	opt := o.orDefault()
	var told []uint64 // the numbers that are waited for
	done := closing{records: make(map[string][]byte), damaged: make(map[uint64]time.Time)}
	contested := 0 // steps in a row that others have made vain
	for {
		begun := time.Now()
		info, waiting, err := emptyStep(ctx, s, name, through, last, &done, opt.Now())
		if errors.Is(err, errContested) {
			err = nil
		}
		switch {
		case err != nil && (ctx.Err() == nil || told == nil):
			return info, err
		case err != nil:
			return info, stopped(ctx, name, through, told)
		case info.State > through: // the last one, or beyond
			return info, nil
		}
		nodes := make([]uint64, len(waiting))
		for i, w := range waiting {
			nodes[i] = w.Node
		}
		if opt.Waiting != nil && !slices.Equal(nodes, told) {
			opt.Waiting(waiting)
		}
		told = nodes
		wait := opt.Poll
		if len(waiting) > 0 {
			contested = 0
		} else {
			// Another operator is at it. Two that begin anew at the same pace would undo
			// each other's steps for ever: each waits by chance, so that one has the
			// time of a whole step.
			wait = time.Duration(random() % uint64(max(wait, time.Since(begun))<<min(contested, contestedMost)))
			contested++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return info, stopped(ctx, name, through, told)
		}
	}
}

// errContested means that a record was written by another process since it was
// read.
var errContested = errors.New("grant: another process was faster")

// contestedMost is how often the wait after a vain step doubles.
const contestedMost = 5

// stopped says that a sequencer is on its way to a state, and what it waits
// for.
func stopped(ctx context.Context, name string, state State, nodes []uint64) error {
	if len(nodes) == 0 {
		return fmt.Errorf("grant: sequencer %s is %v, and another process changes it at the same time; call it again to go on: %w",
			name, state, context.Cause(ctx))
	}
	some := fmt.Sprint(nodes[:min(len(nodes), 8)])
	return fmt.Errorf("grant: sequencer %s is %v, and waits for the windows of %d node IDs, such as %s; call it again to go on: %w",
		name, state, len(nodes), some, context.Cause(ctx))
}

// emptyStep does what can be done at this moment: it changes the state, keeps
// every window from growing, and, when all are over, sets the last state.
func emptyStep(ctx context.Context, s Store, name string, through, last State, done *closing, now time.Time) (Info, []NodeInfo, error) {
	info, begun, err := changeConfig(ctx, s, name, func(r *configRecord) (write bool, err error) {
		switch {
		case r.Version == 0:
			return false, fmt.Errorf("%w: %s", ErrNotFound, name)
		case r.State >= Destroying && last == Detached:
			return false, fmt.Errorf("%w: %s is %v", ErrDestroyed, name, r.State)
		case done.begun != nil && r.State < through:
			return false, undone(name, last)
		case r.State == last || r.State == Purged:
			return true, nil
		case bytes.Equal(r.encode(), done.begun):
			return false, nil
		}
		// Written anew also if it was there: only a List after a write of our own
		// shows every record, as one before may be answered by a store that was
		// replaced.
		r.State = through
		return true, nil
	})
	if err != nil || info.State != through {
		return info, nil, err
	}
	if !bytes.Equal(begun, done.begun) {
		// Others wrote the configuration. Members may have acquired numbers in
		// between.
		done.begun, done.sure = begun, make(map[string]bool)
	}
	waiting, free, err := done.windows(ctx, s, info, ms(now))
	if err != nil || len(waiting) > 0 {
		return info, waiting, err
	}
	if len(free) > 0 {
		// What was read of these may be lost. A value that is read before and after a
		// write that was applied is durable, as it was there at that write.
		begun, err = rewrite(ctx, s, name, begun, through)
		if begun == nil {
			return info, nil, err
		}
		done.begun = begun
		waiting, again, err := done.windows(ctx, s, info, ms(now))
		if err != nil || len(waiting) > 0 || !maps.EqualFunc(free, again, bytes.Equal) {
			return info, waiting, err
		}
	}
	// The records were read after these very bytes were there. Other bytes may say
	// the same: had the sequencer been attached and detached again meanwhile,
	// members would hold numbers that were not closed. Then it begins anew.
	ended, err := rewrite(ctx, s, name, begun, last)
	if ended != nil {
		info.State = last
	}
	return info, nil, err
}

// undone says that another process has made a sequencer usable again that was
// on its way to a last state. That was on purpose, so what waits for its
// windows does not begin anew: it could destroy what was created again.
func undone(name string, last State) error {
	if last == Destroyed {
		return fmt.Errorf("grant: sequencer %s was destroyed and created again while its windows were waited for; the new one is left alone: call it again to destroy that", name)
	}
	return fmt.Errorf("grant: sequencer %s was attached again while its windows were waited for, and is left so: call it again to detach it", name)
}

// rewrite writes a configuration anew, with a state, if it has these very
// bytes. It returns what it wrote, or nil if there are others.
func rewrite(ctx context.Context, s Store, name string, value []byte, state State) (next []byte, err error) {
	ours := [][]byte{value}
	err = settle(ctx, s, configKey(name), func(old []byte) []byte {
		if !contains(ours, old) {
			next = nil
			return nil
		}
		r, _ := decodeConfig(configKey(name), old) // which it was written as
		r.State, r.Nonce = state, newToken()
		next = r.encode()
		ours = append(ours, next)
		return next
	})
	if err != nil {
		return nil, fmt.Errorf("grant: sequencer %s: %w", name, err)
	}
	return next, nil
}

// A closing is what one call of Destroy or DetachAll has written and what was
// applied.
type closing struct {
	begun   []byte               // the configuration
	records map[string][]byte    // those of node IDs, by key
	sure    map[string]bool      // those of records that were there after begun was
	damaged map[uint64]time.Time // when damaged records were found
}

// windows rewrites the record of every held number, so that its owner can
// extend it no more, and returns those whose windows are not over. A window
// that is over is closed too: its owner could open it again. So is a record
// that another operator has closed, as what was read may not be durable.
// Records that are free, other than by an owner who found what windows wrote,
// are returned by key.
func (c *closing) windows(ctx context.Context, s Store, i Info, now int64) (waiting []NodeInfo, free map[string][]byte, err error) {
	free = make(map[string][]byte)
	again := false
	// How long a window lasts after its last renewal.
	longest := (i.Config.MaxAhead + i.LongestWindow).Milliseconds()
	worn := func(node uint64) {
		// Its owner cannot extend it, and may use what it has.
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
		case r.takenAway() && max(now-r.Wall, r.Wall-now) <= longest:
			waiting = append(waiting, r.info(node)) // its owner may not have heard
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
		r.State, r.Nonce = flagClosing, newToken()
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

// eachNode calls visit for every record of a node ID, or worn if it is damaged.
// The records are read first, so that visit may use the store at leisure.
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
		node, err := nodeOf(name, e.key)
		var r nodeRecord
		if err == nil {
			r, err = decodeNode(e.key, e.value)
		}
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
