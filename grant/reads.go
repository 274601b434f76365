package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// A storedNode is the record of a node ID in a store.
type storedNode struct {
	node   uint64
	key    string
	value  []byte
	record nodeRecord
	damage error // why the record cannot be read, or nil
}

// nodeRecords returns the records of all node IDs. It is an error if one of them
// has a newer version.
func nodeRecords(ctx context.Context, s Store, name string) (all []storedNode, err error) {
	listErr := s.List(ctx, nodesPrefix(name), func(key string, value []byte) bool {
		n := storedNode{key: key, value: bytes.Clone(value)}
		if n.node, n.record, n.damage = readNode(name, key, value); n.damage != nil && !errors.Is(n.damage, ErrDamaged) {
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
