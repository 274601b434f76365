package grant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Lookup returns a sequencer. The error matches ErrNotFound if it was never
// created, and ErrDamaged or ErrNewerVersion if its record cannot be read.
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

// LookupOrCreate looks up a sequencer, and creates it with a configuration if
// it was never created. An existing one may have another configuration:
// Info.CheckAgainst compares them.
func LookupOrCreate(ctx context.Context, s Store, name string, c Config, o *CreateOptions) (Info, error) {
	info, err := Lookup(ctx, s, name)
	if errors.Is(err, ErrNotFound) {
		info, err = Create(ctx, s, name, c, o)
		if errors.Is(err, ErrMismatch) {
			info, err = Lookup(ctx, s, name) // another process has created it in the meantime
		}
	}
	return info, err
}

// LookupNode returns what the store knows about one node ID of a sequencer that
// Lookup found. For a node ID that was never used, it returns a NodeInfo with
// only that number. The error matches ErrDamaged or ErrNewerVersion if the
// record cannot be read.
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

// Sequencers calls yield for every sequencer of the store, ordered by name,
// until yield returns false. For a record that cannot be read, or whose name no
// sequencer can have, yield gets an Info with only the name and an error; the
// iteration continues. It reads the store to the end before it calls yield.
func Sequencers(ctx context.Context, s Store, yield func(info Info, err error) bool) error {
	type entry struct {
		info Info
		err  error
	}
	var all []entry
	err := s.List(ctx, keyRoot, func(key string, value []byte) bool {
		name, ok := strings.CutSuffix(strings.TrimPrefix(key, keyRoot), "/config")
		if !ok || strings.Contains(name, "/") {
			return true
		}
		info, err := decodeInfo(key, value)
		if nameErr := CheckName(name); nameErr != nil { // no operation takes it
			info, err = Info{}, fmt.Errorf("%w: %w", ErrDamaged, nameErr)
		}
		info.Name = name
		all = append(all, entry{info, err})
		return true
	})
	if err != nil {
		return err
	}
	// The order of keys is another one: "-" and "." sort before "/".
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.info.Name, b.info.Name) })
	for _, e := range all {
		if !yield(e.info, e.err) {
			break
		}
	}
	return nil
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

// A storedNode is the record of a node ID in a store.
type storedNode struct {
	node   uint64
	key    string
	value  []byte
	record nodeRecord
	damage error // why the record cannot be read, or nil
}

// nodeRecords returns the records of all node IDs. It is an error if one of
// them has a newer version.
func nodeRecords(ctx context.Context, s Store, name string) (all []storedNode, err error) {
	listErr := s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		n := storedNode{key: key, value: bytes.Clone(value)}
		n.node, n.record, n.damage = decodeNodeEntry(name, key, value)
		if n.damage != nil && !errors.Is(n.damage, ErrDamaged) {
			err = n.damage
		}
		all = append(all, n)
		return err == nil
	})
	if listErr != nil {
		err = fmt.Errorf("grant: sequencer %s: %w", name, listErr)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}
