package grant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// closeWindows moves a sequencer to the state last, by way of through, in which
// its windows end.
func closeWindows(ctx context.Context, s Store, name, what string, through, last State, o *WaitOptions) (Info, error) {
	closer := newWindowCloser()
	return pollUntilFinished(ctx, o, func(now time.Time) (Info, []Wait, bool, error) {
		info, waiting, err := closer.step(ctx, s, name, what, through, last, now)
		return info, waiting, info.State > through, err // the last one, or beyond
	})
}

// pollUntilFinished calls step until it is finished, and passes what it waits
// for to o.Waiting.
func pollUntilFinished(ctx context.Context, o *WaitOptions,
	step func(now time.Time) (info Info, waiting []Wait, finished bool, err error)) (Info, error) {
	opt := *cmp.Or(o, new(WaitOptions))
	now := clockOr(opt.Now)
	var shown []Wait // last passed to Waiting
	contested := 0   // consecutive steps that other operators undid
	var was Info
	for {
		begun := time.Now()
		info, waiting, finished, err := step(now())
		if errors.Is(err, errContested) {
			err = nil
		}
		switch {
		case err != nil && (ctx.Err() == nil || shown == nil):
			return info, err
		case err != nil:
			return info, interruptedError(ctx, was, shown)
		case finished:
			return info, nil
		}
		was = info
		if opt.Waiting != nil && !slices.EqualFunc(waiting, shown, sameWait) {
			opt.Waiting(waiting)
		}
		shown = append([]Wait{}, waiting...) // not nil, and not what Waiting got
		wait := pollEvery
		if len(waiting) > 0 {
			contested = 0
		} else {
			// Another operator is changing the sequencer. Two that start over
			// at the same pace would undo each other's steps forever: each
			// waits for a random time, so that one of them can complete a step.
			wait = time.Duration(random() % uint64(max(wait, time.Since(begun))<<min(contested, maxDoublings)))
			contested++
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return info, interruptedError(ctx, was, shown)
		}
	}
}

// pollEvery is the interval at which windows are checked while waiting for
// their end.
const pollEvery = 250 * time.Millisecond

// errContested is returned if another process has written a record since it was
// read.
var errContested = errors.New("grant: another process was faster")

// maxDoublings is how often the wait after a contested step doubles.
const maxDoublings = 5

// sameWait reports whether two waits are for the same. The end of one changes
// with each look at a clock.
func sameWait(a, b Wait) bool { return a.Why == b.Why && a.Node == b.Node }

// interruptedError returns the error of an interrupted operation: the state of
// the sequencer, and what the operation was waiting for.
func interruptedError(ctx context.Context, i Info, waiting []Wait) error {
	name, state := i.Name, i.State
	if len(waiting) == 0 {
		return fmt.Errorf("grant: sequencer %s is %v, and another process is changing it; call it again to "+
			"continue: %w", name, state, context.Cause(ctx))
	}
	what := waiting[0].String()
	if more := len(waiting) - 1; more > 0 {
		what += fmt.Sprintf(", and for %d more", more)
	}
	return fmt.Errorf("grant: sequencer %s is %v, waiting for %s; call it again to continue: %w", name, state, what,
		context.Cause(ctx))
}

// A windowCloser closes the windows of a sequencer for one call of Destroy,
// Detach or SetNodes: it remembers what that has written.
type windowCloser struct {
	spared    *NodeRange           // node IDs that are not closed; nil: none
	nonce     string               // of the configuration, after which records were read
	written   map[string][]byte    // the closed records, by key
	confirmed map[string]bool      // keys of records that were there after the nonce was written
	damaged   map[uint64]time.Time // when damaged records were found
}

func newWindowCloser() *windowCloser {
	return &windowCloser{written: make(map[string][]byte), damaged: make(map[uint64]time.Time)}
}

// step does what can be done now: it changes the state to through, prevents
// every window from growing and, once all have ended, sets the state last.
func (c *windowCloser) step(ctx context.Context, s Store, name, what string, through, last State, now time.Time) (
	info Info, waiting []Wait, err error) {
	info, err = changeUnmoved(ctx, s, name, what, func(i *Info) (writing, error) {
		switch {
		case i.State >= Destroying && last == Detached:
			return writeNothing, fmt.Errorf("%w: %s is %v", ErrDestroyed, name, i.State)
		case c.nonce != "" && i.State < through:
			return writeNothing, undoneError(name, last)
		case i.State == last || i.State == Purged:
			return writeSame, nil
		case i.nonce == c.nonce:
			return writeNothing, nil
		}
		// Written even if the state was set already: only a List after a write
		// of our own shows every record, because an earlier one may be answered
		// by a server that was replaced.
		return i.setState(through), nil
	})
	if err != nil || info.State != through {
		return info, nil, err
	}
	waiting, ended, err := c.closeAndVerify(ctx, s, info, ms(now))
	if !ended {
		return info, waiting, err
	}
	// The records were read after the configuration had this nonce. With
	// another one, it may describe the same state: if the sequencer was
	// attached and detached again in between, members hold node IDs that were
	// not closed. Then the step starts over.
	nonce, err := changeIfNonce(ctx, s, name, c.nonce, func(i *Info) { i.State = last })
	if nonce != "" {
		info.State = last
	}
	return info, nil, err
}

// undoneError returns the error if another process made a sequencer usable
// again while it was being detached or destroyed. That was intentional, so the
// operation does not start over: it could destroy the new sequencer.
func undoneError(name string, last State) error {
	if last == Destroyed {
		return fmt.Errorf("grant: sequencer %s was destroyed and created again in the meantime; the new one is "+
			"unchanged: call it again to destroy it", name)
	}
	return fmt.Errorf("grant: sequencer %s was attached again in the meantime and stays attached: call it again to "+
		"detach it", name)
}

// closeAndVerify closes windows, and reports whether all had ended when the
// configuration was the given one, or has c.nonce if that is newer. Otherwise
// it returns those that it waits for.
func (c *windowCloser) closeAndVerify(ctx context.Context, s Store, i Info, now int64) (
	waiting []Wait, ended bool, err error) {
	if i.nonce != c.nonce {
		// Members may have acquired node IDs since the last step.
		c.nonce, c.confirmed = i.nonce, make(map[string]bool)
	}
	waiting, free, err := c.closeAll(ctx, s, i, now)
	if err != nil || len(waiting) > 0 {
		return waiting, false, err
	}
	if len(free) > 0 {
		// The values read for these may be lost. A value that is read both
		// before and after an applied write is durable, because it was there at
		// that write.
		next, err := changeIfNonce(ctx, s, i.Name, c.nonce, func(*Info) {})
		if next == "" {
			return nil, false, err
		}
		c.nonce = next
		waiting, again, err := c.closeAll(ctx, s, i, now)
		if err != nil || len(waiting) > 0 || !maps.EqualFunc(free, again, bytes.Equal) {
			return waiting, false, err
		}
	}
	return nil, true, nil
}

// closeAll rewrites the record of every held node ID, so that its owner can no
// longer extend it, and returns those whose windows have not ended. It also
// closes windows that have ended, because their owners could open them again,
// and records that another operator has closed, because the value read may not
// be durable. It returns by key the records that are free, except those freed
// by an owner that found what closeAll wrote.
func (c *windowCloser) closeAll(ctx context.Context, s Store, i Info, now int64) (
	waiting []Wait, free map[string][]byte, err error) {
	free = make(map[string][]byte)
	contested := false
	// How long a window lasts after its last renewal.
	longest := (i.Config.MaxAhead + i.LongestWindow).Milliseconds()
	if c.spared != nil {
		longest += MaxSkew.Milliseconds() // see HandOverTime
	}
	records, err := nodeRecords(ctx, s, i.Name)
	for _, n := range records {
		key, r := n.key, n.record
		ours, _ := decodeNode(key, c.written[key])
		switch {
		case c.spared != nil && c.spared.Has(n.node):
			continue
		case n.damage != nil:
			// Its owner cannot extend it, but may use the rest of its window,
			// which its clock passes within this time, even if it is wrong,
			// unless it is set back. The mark may be far away all the same: so
			// HandOverTime ends with an error.
			if c.damaged[n.node].IsZero() {
				c.damaged[n.node] = time.Now()
			}
			if left := longest - time.Since(c.damaged[n.node]).Milliseconds(); left >= 0 {
				waiting = append(waiting, Wait{Why: WaitDamaged, Node: n.node, Until: timeOf(now + left)})
			}
			continue
		case r.takenAway() && max(now-r.Wall, r.Wall-now) <= longest:
			waiting = append(waiting, Wait{Why: WaitFenced, Node: n.node, Until: timeOf(r.Wall + longest)})
			continue
		case !r.held():
			if !c.confirmed[key] || ours.Owner != r.Owner {
				free[key] = n.value
			}
			continue
		case r.Until >= now:
			waiting = append(waiting, Wait{Why: WaitHeld, Node: n.node, Host: r.Host, Until: timeOf(r.Until)})
		}
		if bytes.Equal(n.value, c.written[key]) {
			c.confirmed[key] = true
			continue
		}
		r.State, r.Nonce = nodeClosing, newToken(random)
		next := r.encode()
		switch applied, err := s.CAS(ctx, key, n.value, next); {
		case err != nil:
			return nil, nil, fmt.Errorf("grant: sequencer %s: node ID %d: %w", i.Name, n.node, err)
		case applied:
			c.written[key], c.confirmed[key] = next, true
		default:
			contested = true // its owner was faster
		}
	}
	if err == nil && contested {
		err = errContested
	}
	return waiting, free, err
}
