package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
)

// otherStore compares the node IDs of sequencers that two stores have, and
// whether one has given node IDs to the other too early.
func (r *report) otherStore(ctx context.Context) {
	const check = "other store"
	if r.config.OtherError != nil {
		r.add(check, Fix, cmp.Or(r.config.OtherHint, "check the URL and the network"), "%v", r.config.OtherError)
	}
	if r.config.Store == nil || r.config.Other == nil {
		return
	}
	here, all := make(map[string]grant.Info), 0
	var pairs [][2]grant.Info // that use different node IDs
	err := grant.Sequencers(ctx, r.config.Store, func(i grant.Info, err error) bool {
		switch {
		case err != nil:
			r.notCompared(check, i.Name, "this", err)
		case i.MovedTo == "":
			here[i.Name] = i
		}
		return true
	})
	if err == nil {
		err = grant.Sequencers(ctx, r.config.Other, func(there grant.Info, err error) bool {
			name := there.Name
			i, both := here[name]
			if err != nil {
				r.notCompared(check, name, "the other", err)
			}
			if err != nil || !both || there.MovedTo != "" {
				return true
			}
			all++
			a, b := i.Config.Nodes, there.Config.Nodes
			apart := a != nil && b != nil && (a.Hi < b.Lo || b.Hi < a.Lo)
			if apart || i.State >= grant.Detached || there.State >= grant.Detached { // which uses none
				pairs = append(pairs, [2]grant.Info{i, there})
			} else {
				r.add(check, Fix,
					fmt.Sprintf("give the two stores ranges that do not overlap: firn sequencer nodes %s "+
						"LO..HI, for each --store", name),
					"%s may use the node IDs %v in this store, and %v in the other: their IDs can be equal", name, a, b)
			}
			if !i.Config.Layout.SameIDs(there.Config.Layout) {
				r.add(check, Fix,
					"IDs of two layouts can be equal whatever their node IDs are: use one layout, or separate columns",
					"%s has layout %s in this store, and %s in the other", name, i.Config.Layout, there.Config.Layout)
			}
			return true
		})
	}
	for _, pair := range pairs {
		if err == nil {
			err = errors.Join(r.handedOver(ctx, check, r.config.Store, pair[0], pair[1], "this"),
				r.handedOver(ctx, check, r.config.Other, pair[1], pair[0], "the other"))
		}
	}
	switch {
	case err != nil:
		r.add(check, Unknown, "", "the sequencers of both stores cannot be compared: %v", err)
	case !slices.ContainsFunc(r.found, func(f Finding) bool { return f.Check == check }):
		r.add(check, OK, "", "%d sequencers are in both stores, and no node ID is in both", all)
	}
}

// notCompared reports a sequencer of one of the stores that has a record which
// cannot be read.
func (r *report) notCompared(check, name, which string, err error) {
	r.add(check, Unknown, "", "sequencer %s of %s store is not compared: %v", name, which, err)
}

// handedOver checks that all clocks, or the floor elsewhere, have passed what
// was granted in a store of the node IDs that another store has now.
func (r *report) handedOver(ctx context.Context, check string, s grant.Store, i, elsewhere grant.Info, which string,
) error {
	if elsewhere.State >= grant.Detached {
		return nil
	}
	given := elsewhere.Config.Nodes
	i.Floor = time.Time{} // records reports it
	at, err := grant.HandOverTime(ctx, s, i, given.Has)
	switch {
	case errors.Is(err, grant.ErrDamaged):
		r.add(check, Fix, damagedHint, "node IDs %v of %s may have been used in %s store at any time, and are those "+
			"of another: %v", given, i.Name, which, err)
		return nil
	case errors.Is(err, grant.ErrNewerVersion):
		r.notCompared(check, i.Name, which, err)
		return nil
	case err == nil && at.After(r.config.Now()) && at.After(elsewhere.Floor):
		r.add(check, Fix,
			fmt.Sprintf("if they changed stores since, detach %s in the store that has them now until then, and "+
				"look for IDs that exist twice", i.Name),
			"node IDs %v of %s may have been used in %s store up to %s, and are those of another",
			given, i.Name, which, textfmt.Stamp(at))
	}
	return err
}
