package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn/grant"
)

// timedReads is how many requests are timed, and slowStore the latency of a
// slow store.
const (
	timedReads = 9
	slowStore  = 250 * time.Millisecond
)

// unusedKey is a key that no store has.
const unusedKey = "doctor/latency"

// store checks the store, its clock, and the records of other servers in it.
func (r *report) store(ctx context.Context) {
	switch {
	case r.config.Missing:
		r.add("store", OK, "", "%s has no store yet: the server creates it when it starts", r.config.Directory)
		return
	case r.config.Store == nil && r.config.StoreError == nil:
		return
	case r.config.StoreError != nil:
		r.add("store", Fix, r.config.StoreHint, "%v", r.config.StoreError)
		return
	}
	var took []time.Duration
	var err error
	for err == nil && len(took) < timedReads {
		begin := time.Now()
		_, err = r.config.Store.Get(ctx, unusedKey)
		took = append(took, time.Since(begin))
	}
	if err == nil {
		// Nothing is written, but a store that takes no writes refuses it.
		_, err = r.config.Store.CAS(ctx, unusedKey, []byte("never"), []byte("written"))
	}
	if err != nil {
		r.add("store", Fix, "check the store's own log and permissions, and the network",
			"cannot use the store: %v", err)
		return
	}
	slices.Sort(took)
	if median := took[timedReads/2].Round(time.Microsecond); median > slowStore {
		r.add("store", Fix,
			"move it closer, or give it a faster disk; with longer windows it is needed less often (docs/operations.md)",
			"the store answers in %v: slow", median)
	} else {
		r.add("store", OK, "", "the store answers in %v", median)
	}
	if c, ok := grant.As[grant.Dangers](r.config.Store); ok {
		dangers, err := c.Dangers(ctx)
		if err != nil {
			r.add("store", Unknown, "", "cannot check the store: %v", err)
		}
		for _, d := range dangers {
			r.add("store", Fix, "see docs/stores.md for what each store needs", "%s", d)
		}
	}
	r.storeClock(ctx)
	r.records(ctx)
	r.members(ctx)
}

// damagedHint says what to do about a damaged record.
const damagedHint = "do not delete it: its IDs would be handed out again; " +
	"see \"Damaged and newer records\" in docs/runbooks.md"

// records reads all records of sequencers.
func (r *report) records(ctx context.Context) {
	fine := 0
	found := func(what string, err error) {
		hint := damagedHint
		if errors.Is(err, grant.ErrNewerVersion) {
			hint = "use a newer firn"
		}
		r.add("records", Fix, hint, "%s: %v", what, err)
	}
	var names []string
	err := grant.Sequencers(ctx, r.config.Store, func(i grant.Info, err error) bool {
		if err != nil {
			found("sequencer "+i.Name+" cannot be used", err)
			return true
		}
		fine++
		names = append(names, i.Name)
		r.state(i)
		if at := i.Floor.Add(-i.Config.MaxAhead); i.State == grant.Attached && at.After(r.config.Now()) {
			r.add("records", Fix, "wait: members begin by themselves",
				"sequencer %s makes no IDs before %s, in %v: it was fenced, or created to begin then",
				i.Name, at.UTC().Format(time.RFC3339), at.Sub(r.config.Now()).Round(time.Second))
		}
		return true
	})
	for _, name := range names {
		if err == nil {
			err = grant.Nodes(ctx, r.config.Store, name, func(n grant.NodeInfo, err error) bool {
				if err != nil {
					found(fmt.Sprintf("node ID %d of sequencer %s cannot be used", n.Node, name), err)
				} else {
					fine++
				}
				return true
			})
		}
	}
	switch {
	case err != nil:
		r.add("records", Unknown, "", "cannot list the records of the store: %v", err)
	case fine > 0:
		r.add("records", OK, "", "%d records of sequencers can be read", fine)
	}
}

// wholeYear is how long before the end of a layout's time another sequencer is
// needed: programs that keep its IDs have to change too.
const wholeYear = 365 * 24 * time.Hour

// state reports a sequencer that an operator has stopped, and one whose layout
// ends.
func (r *report) state(i grant.Info) {
	name, since := i.Name, ""
	if c := i.LastChange; c != (grant.Change{}) {
		since = fmt.Sprintf(" (last change: %s by %s, %s)", c.What, c.By, c.At.Format(time.RFC3339))
	}
	switch end := i.Config.Layout.End(); {
	case i.MovedTo != "":
		r.add("records", OK, "", "sequencer %s was moved to %s%s", name, i.MovedTo, since)
	case i.State >= grant.Destroyed:
	case i.State == grant.Destroying:
		r.add("records", Fix, "finish it: firn sequencer destroy "+name, "sequencer %s is destroying%s", name, since)
	case i.State != grant.Attached:
		r.add("records", Fix, "if its IDs are wanted: firn sequencer attach "+name,
			"sequencer %s is %s: no server gives its IDs%s", name, i.State, since)
	case end.Sub(r.config.Now()) < wholeYear:
		r.add("records", Fix, "create another sequencer with more time bits, and change its users to that",
			"sequencer %s has no IDs after %s: the time of layout %s ends",
			name, end.UTC().Format(time.RFC3339), i.Config.Layout)
	}
}
