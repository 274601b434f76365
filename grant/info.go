package grant

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// A State is the state of a sequencer in a store, for all its processes.
type State uint8

// The states of a sequencer.
const (
	Attached   State = iota + 1 // members may hold node IDs
	Detaching                   // members give their node IDs back
	Detached                    // no member holds one, until Attach
	Destroying                  // members give their node IDs back
	Destroyed                   // until it is created again with the same layout
	Purged                      // may be created again with any configuration
)

var stateNames = [...]string{
	Attached: "attached", Detaching: "detaching", Detached: "detached",
	Destroying: "destroying", Destroyed: "destroyed", Purged: "purged",
}

// String returns the state as a word.
func (s State) String() string {
	if s < Attached || s > Purged {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return stateNames[s]
}

// err returns why no node ID can be acquired in this state.
func (s State) err() error {
	switch s {
	case Attached:
		return nil
	case Detaching, Detached:
		return ErrDetached
	default:
		return ErrDestroyed
	}
}

// An Info is what the store knows about a sequencer as a whole.
type Info struct {
	Name        string
	State       State
	Config      Config
	Incarnation uint64    // grows with every creation and every fence
	Floor       time.Time // no new grant begins before it; the later one of Create and Fence, zero if none was set
	Created     time.Time // by its creator's clock

	// LongestWindow is the longest window that the sequencer ever had.
	LongestWindow time.Duration

	// MovedTo is the URL of the store that has the sequencer now; see Move.
	MovedTo string

	// LastChange is the last operation that changed this record.
	LastChange Change

	nonce string // new in every write of the record

	// The two parts of Floor: as Create set it, and as Fence did. Only that of
	// a fence lies above all windows that may have been granted, so that a
	// frozen member may continue.
	createFloor, fenceFloor time.Time
}

// A Change is an operation on a sequencer, for people: who did it, and when.
type Change struct {
	What string    // such as "create", "detach" or "fence": a command of firn
	By   string    // see WithOperator
	At   time.Time // when it began, by the clock of its machine
}

type operatorKey struct{}

// WithOperator returns a context for operations on sequencers by an operator,
// whose name is written into the record as Change.By, cut to 64 bytes. Without
// it, that is the name of the host.
func WithOperator(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operatorKey{}, name)
}

// changeBy returns a Change that begins now.
func changeBy(ctx context.Context, what string) Change {
	by, _ := ctx.Value(operatorKey{}).(string)
	if by == "" {
		by, _ = os.Hostname()
	}
	at := min(max(ms(time.Now()), -maxTime), maxTime)
	return Change{what, truncate(strings.ToValidUTF8(by, "?"), maxBy), timeOf(at)}
}

// laterFloor returns the later one of the two floors.
func (i Info) laterFloor() time.Time { return timeOf(max(ms(i.createFloor), ms(i.fenceFloor))) }

// newInfo returns a sequencer that was not created yet: its record has no time.
func newInfo(name string, c Config) Info {
	return Info{Name: name, State: Attached, Config: c, Incarnation: 1, LongestWindow: c.Window}
}

// Check returns an error if the sequencer has another configuration than a
// process wants, or can make no more IDs. Nodes are not compared, and the
// prefix only if want has one.
func (i Info) Check(want Config, now time.Time) error {
	if err := i.Config.compare(i.Name, want); err != nil {
		return err
	}
	return i.Config.checkTime(i.Name, now)
}

// A NodeInfo is what the store knows about one node ID.
type NodeInfo struct {
	Node    uint64
	Owner   string    // of the process that holds or held it; random, and empty after Fence
	Host    string    // of that process
	Until   time.Time // the mark: exclusive end of all windows granted so far
	Written time.Time // when the record was last written, by its writer's clock
	Held    bool      // false if it was given back or fenced
	Closing bool      // its owner must give it back

	// For Repair only: From and To are the span of time that it gives back,
	// which no window of the node ID ever covered. From To up to Kept, wrong
	// clocks have claimed the node ID; that span is never used again. All three
	// are zero if the record contains no such span. Then only time frees the
	// node ID.
	From, To, Kept time.Time
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
	return decodeInfo(key, value)
}

// Sequencers calls yield for every sequencer of the store, ordered by name,
// until yield returns false. For a record that cannot be read, yield gets the
// name and an error; the iteration continues.
func Sequencers(ctx context.Context, s Store, yield func(name string, info Info, err error) bool) error {
	return s.List(ctx, keyRoot, func(key string, value []byte) bool {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, keyRoot), "/config")
		if !ok || strings.Contains(name, "/") {
			return true
		}
		info, err := decodeInfo(key, value)
		info.Name = name
		return yield(name, info, err)
	})
}

// Nodes calls yield for every node ID of the sequencer that was ever used, in
// ascending order, until yield returns false. For a record that cannot be read,
// yield gets the node ID and an error. After a Purge and a creation with a
// layout of another node width, the node IDs of both are listed.
func Nodes(ctx context.Context, s Store, name string, yield func(n NodeInfo, err error) bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		node, r, err := decodeNodeEntry(name, key, value)
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
