package grant

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/stale"
)

// A Holder uses the grants that a Keeper obtains, usually for a generator. One
// goroutine at a time calls its methods, which should return soon. An error of
// Begin or Extend is logged, and the Keeper keeps the node ID all the same.
type Holder interface {
	// Begin uses a grant in place of the previous one, for times above all that
	// were used before.
	Begin(g firn.Grant) error

	// Extend moves the end of the current grant's window to a later time.
	Extend(until time.Time) error

	// Stop ends the use of the current grant: nothing of it is used after Stop
	// has returned. Begin may follow.
	Stop()

	// Used returns the exclusive end of all times used under any grant, or the
	// zero time if no time was used. It never goes back.
	Used() time.Time
}

// A Keeper keeps a node ID of a sequencer for a Holder: it acquires one, renews
// its window as long as IDs are made, and gives it back. It is safe for
// concurrent use by multiple goroutines.
//
// The Keeper's goroutine calls MemberOptions.Now, the Logger and the Holder;
// another goroutine calls the Store. A panic in any of them ends the process.
// None may end its goroutine (runtime.Goexit, as in t.Fatal). A function that
// blocks delays renewals. It must not call Join, Leave, Demand, Wait or Close,
// nor wait for an ID of the same sequencer.
//
// A Keeper must be made by NewKeeper and ends with Close or Abandon. Calls that
// need it afterwards return an error that matches firn.ErrClosed.
type Keeper struct {
	store    Store
	holder   Holder
	settings settings
	start    time.Time

	wake    chan struct{} // of size 1: there is a call to pass on
	answers chan event
	stop    context.CancelFunc
	done    chan struct{} // closed when run has ended

	requests   sync.WaitGroup  // the request in progress, if any
	lineage    *lineageTracker // for that request alone
	stopHolder sync.Once       // after run has ended

	mu      sync.Mutex // guards the fields below
	status  Status
	info    Info
	known   bool          // info has been read
	changed chan struct{} // closed and replaced when status changes or a window grows
	stats   KeeperStats
	closed  bool
	pending eventKind     // the event of the last call that is to be passed on; eventTick: none
	calls   uint64        // number of calls of Join, Leave and Demand
	passed  uint64        // how many of them the machine knows
	passing chan struct{} // closed and replaced when passed grows
}

// KeeperStats are statistics of a Keeper since it was made.
type KeeperStats struct {
	Requests uint64 // to the store
	Failed   uint64 // requests that returned an error
	Unknown  uint64 // failed compare-and-swaps whose result was unknown
	Refused  uint64 // compare-and-swaps that were not applied because the record had changed
	Applied  uint64 // compare-and-swaps that were applied
	Acquired uint64 // node IDs
	Renewed  uint64 // windows
	Released uint64 // node IDs that were given back
	Lost     uint64 // node IDs that another member took over; see AlarmTakenOver
	Expired  uint64 // windows that could not be renewed and ended; those that an operator ended do not count
	Alarms   AlarmCounts
}

// NewKeeper returns a Keeper of the sequencer with that name, which holds
// nothing until Join is called. If CheckName rejects the name, that is the
// error of the Status from then on. config is the configuration that the
// sequencer must have been created with; nil accepts any. Only Layout and
// MaxAhead are compared. The store stays the caller's, to be closed after the
// Keeper.
func NewKeeper(store Store, name string, config *Config, holder Holder, o *MemberOptions) *Keeper {
	switch { // now, and not in a goroutine, whose panic nobody can recover
	case store == nil:
		panic("grant: NewKeeper needs a store")
	case holder == nil:
		panic("grant: NewKeeper needs a holder")
	}
	s := settings{MemberOptions: *cmp.Or(o, new(MemberOptions)), name: name, config: config}
	s.Now = clockOr(s.Now)
	s.Logger = cmp.Or(s.Logger, slog.New(slog.DiscardHandler)).With("sequencer", s.name)
	s.random = random
	s.host, _ = os.Hostname()
	_, s.storeClock = As[Clock](store)
	k := &Keeper{
		store: store, holder: holder, settings: s, start: time.Now(),
		wake: make(chan struct{}, 1), answers: make(chan event, 2),
		done: make(chan struct{}), changed: make(chan struct{}), passing: make(chan struct{}),
		lineage: newLineageTracker(store),
	}
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	go k.run(ctx, newMachine(s))
	return k
}

// run is the Keeper's goroutine. At most one request is in progress besides it.
//
// It may end in a panic of code that is not ours. Then no deferred call may
// wait, or the process would hang instead of ending; see TestKeeperPanics.
func (k *Keeper) run(ctx context.Context, m *machine) {
	defer k.wakeAll()
	var timer <-chan time.Time
	var ending <-chan time.Time // when a window ends that could not be renewed
	outage := outage{log: k.settings.Logger}
	hints := make(<-chan struct{})
	if w, ok := As[Watcher](k.store); ok {
		hints = w.Watch(ctx, configKey(k.settings.name))
	}
	for {
		var e event
		var calls uint64
		select {
		case <-ctx.Done():
			k.requests.Wait()
			return
		case <-k.wake:
			k.mu.Lock()
			e.Kind, k.pending, calls = k.pending, eventTick, k.calls
			k.mu.Unlock()
		case e = <-k.answers:
		case <-timer: // an eventTick
		case <-ending: // likewise
		case _, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
			e.Kind = eventHint
		}
		timer = k.handleEvent(ctx, m, &e, timer)
		expired := outage.expired
		ending = nil
		if left := outage.update(m); left > 0 {
			ending = time.After(left)
		}
		if outage.expired && !expired {
			k.updateStats(func(s *KeeperStats) { s.Expired++ })
		}
		if calls > 0 {
			k.mu.Lock()
			k.passed = calls
			close(k.passing)
			k.passing = make(chan struct{})
			k.mu.Unlock()
		}
	}
}

// handleEvent passes an event to the machine and performs its actions. It
// returns the timer, or its successor. It is not a part of run, which waits
// most of the time: the runtime shrinks the stack of a goroutine that waits in
// a small frame.
func (k *Keeper) handleEvent(ctx context.Context, m *machine, e *event, timer <-chan time.Time) <-chan time.Time {
	for again := true; again; {
		again = false
		for _, a := range k.step(m, *e) {
			switch {
			case a.isRequest():
				k.requests.Go(func() { k.answerRequest(ctx, a) })
			case a.Kind == actionTimer:
				timer = time.After(time.Until(k.start.Add(time.Duration(a.At) * time.Millisecond)))
			case a.Kind == actionSeal:
				k.holder.Stop()
				*e, again = event{Kind: eventSealed}, true
			default:
				k.perform(a)
			}
		}
	}
	return timer
}

// answerRequest makes a request, and passes the answer to run.
func (k *Keeper) answerRequest(ctx context.Context, a action) {
	e, back := k.askStore(ctx, a)
	if back != nil {
		k.answers <- *back
	}
	k.answers <- e // there is room, because there is one request at a time
}

// wakeAll wakes all callers that wait for the Keeper.
func (k *Keeper) wakeAll() {
	k.stop()
	close(k.done)
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// step passes an event to the machine with the current times.
func (k *Keeper) step(m *machine, e event) []action {
	actions := m.step(e.withTimes(k.settings.Now(), time.Since(k.start), k.holder.Used()))
	k.mu.Lock()
	defer k.mu.Unlock()
	k.info, k.known = m.lastInfo()
	return actions
}

// perform performs an action that is not a request.
func (k *Keeper) perform(a action) {
	log := k.settings.Logger
	switch a.Kind {
	case actionBegin:
		g := a.grant()
		if err := k.holder.Begin(g); err != nil {
			// The window ends unused, and another is acquired when IDs are
			// wanted.
			log.Error("grant not usable", "node", a.Node, "error", err)
		}
		k.updateStats(func(s *KeeperStats) { s.Acquired++ })
		log.Info("node ID acquired", "node", a.Node, "from", g.From, "until", g.Until)
	case actionExtend:
		if err := k.holder.Extend(a.end()); err != nil {
			log.Error("window not extended", "node", a.Node, "error", err)
		}
		k.updateStats(func(s *KeeperStats) { s.Renewed++ })
	case actionAlarm:
		k.updateStats(func(s *KeeperStats) {
			s.Alarms[a.Alarm.Kind]++
			if a.Alarm.Kind == AlarmTakenOver {
				s.Lost++
			}
		})
		k.logAlarm(a.Alarm)
	case actionReport:
		k.mu.Lock()
		before := k.status
		k.status = a.Status
		close(k.changed)
		k.changed = make(chan struct{})
		k.mu.Unlock()
		if before.Phase == Leaving && (a.Status.Phase == Idle || a.Status.Phase == Joining) {
			switch {
			case a.GaveBack:
				k.updateStats(func(s *KeeperStats) { s.Released++ })
				log.Info("node ID given back", "node", before.Node)
			case a.Status.Phase == Idle && a.Status.Err != nil:
				log.Info("node ID not given back", "node", before.Node, "until", before.Until, "error", a.Status.Err)
			}
		}
		if err := a.Status.Err; err != nil && !sameError(err, before.Err) {
			log.Debug("request failed", "phase", a.Status.Phase.String(), "error", err) // see outage
		}
	}
}

func (k *Keeper) updateStats(add func(*KeeperStats)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	add(&k.stats)
}

// logAlarm logs an alarm.
func (k *Keeper) logAlarm(a raisedAlarm) {
	log := k.settings.Logger
	switch {
	case a.By != 0:
		log = log.With("by", a.By)
	case a.Kind == AlarmTakenOver:
		log = log.With("node", a.Node, "until", timeOf(a.Until))
	case a.Until > a.From:
		log = log.With("node", a.Node, "from", timeOf(a.From), "until", timeOf(a.Until))
	}
	log.Log(context.Background(), alarms[a.Kind].level, alarms[a.Kind].message)
}

// requestTimeout is how long a request to the store may take before its result
// is unknown. A sixth of the window is the limit if that is shorter, so that
// one lost request does not cost the window.
const requestTimeout = 5 * time.Second

// askStore makes a request, after checkLineage if it writes or reads the
// configuration. back is not nil if the store is known to have gone back.
func (k *Keeper) askStore(ctx context.Context, a action) (e event, back *event) {
	limit := requestTimeout
	if info, ok := k.Info(); ok {
		limit = min(limit, info.Config.Window/6)
	}
	// Also before the configuration is read, so that a fence's floor is not
	// known before its reason.
	config := configKey(k.settings.name)
	if a.Kind == actionCAS || a.Key == config || slices.Contains(a.Keys, config) {
		back, e.Err = k.checkLineage(ctx, limit)
	}
	if e.Err == nil {
		e = k.callStore(ctx, limit, a)
	}
	if _, ok := errors.AsType[*stale.Error](e.Err); ok {
		// If the sequencer was fenced since, the store is used from then on,
		// and the next request has an answer.
		k.callStore(ctx, limit, action{Kind: actionGet, Key: config})
	}
	e.Kind = eventAnswered
	if a.Kind == actionTime && errors.Is(e.Err, errors.ErrUnsupported) {
		return e, back // nothing was asked: the Store had a clock only as long as it was not known
	}
	if e.Applied && e.Err == nil {
		k.lineage.applied()
	}
	k.updateStats(func(s *KeeperStats) {
		s.Requests++
		switch {
		case e.Err != nil:
			s.Failed++
			if a.Kind == actionCAS && !errors.Is(e.Err, ErrNotSent) {
				s.Unknown++
			}
		case a.Kind == actionCAS && !e.Applied:
			s.Refused++
		case a.Kind == actionCAS:
			s.Applied++
		}
	})
	return e, back
}

// checkLineage returns why no request may be made now, and the event for a
// store that went back. It has a timeout of its own: if a store is slow because
// many members ask it, half of one timeout would never suffice.
func (k *Keeper) checkLineage(ctx context.Context, limit time.Duration) (back *event, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch wentBack, err := k.lineage.wentBack(ctx); {
	case err != nil:
		return nil, fmt.Errorf("%w: the store did not return its lineage: %w", ErrNotSent, err)
	case !wentBack:
		return nil, nil
	}
	back = &event{Kind: eventWentBack}
	// The sequencer may have been fenced since.
	if config, err := get(ctx, k.store, configKey(k.settings.name)); err == nil {
		back.Values = [][]byte{config}
	}
	return back, fmt.Errorf("%w: the store went back to an earlier state", ErrNotSent)
}

// callStore makes the call of the store that a request is.
func (k *Keeper) callStore(ctx context.Context, limit time.Duration, a action) (e event) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch a.Kind {
	case actionGet:
		var v []byte
		v, e.Err = get(ctx, k.store, a.Key)
		e.Values = [][]byte{v}
	case actionGetMany:
		e.Keys = a.Keys
		e.Values, e.Err = getMany(ctx, k.store, a.Keys)
	case actionList:
		e.Err = k.store.List(ctx, a.Key, func(key string, value []byte) bool {
			e.Keys = append(e.Keys, key)
			e.Values = append(e.Values, bytes.Clone(value))
			return true
		})
	case actionCAS:
		e.Applied, e.Err = k.store.CAS(ctx, a.Key, a.Old, a.Next)
		if errors.Is(e.Err, ErrDamaged) && errors.Is(e.Err, ErrNotSent) {
			e.Err = nil // the stored value is not the one to be replaced
		}
	case actionTime:
		e.Time, e.Within, e.Err = storeTime(ctx, k.store)
	}
	return e
}

// passEvent passes an event on to the machine, and waits until it knows that or
// a later one.
func (k *Keeper) passEvent(ctx context.Context, kind eventKind) error {
	k.mu.Lock()
	if k.closed && kind == eventJoin {
		k.mu.Unlock()
		return errKeeperClosed
	}
	if kind != eventDemand || k.pending == eventTick {
		k.pending = kind
	}
	k.calls++
	mine := k.calls
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default: // it is about to wake
	}
	for {
		k.mu.Lock()
		passed, passing := k.passed, k.passing
		k.mu.Unlock()
		if passed >= mine {
			return nil
		}
		select {
		case <-passing:
		case <-k.done:
			return errKeeperClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errKeeperClosed = fmt.Errorf("%w: the keeper", firn.ErrClosed)

// Join requests a node ID. It does not wait for it (see Wait), but after it has
// returned nil, Status no longer reports an earlier attempt. After Close, it
// has no effect and returns an error.
//
// The last call of Join or Leave takes effect, even if its context has ended:
// the contexts of these and of Demand end only the wait until the Keeper knows.
func (k *Keeper) Join(ctx context.Context) error { return k.passEvent(ctx, eventJoin) }

// Leave reports that no node ID is wanted any more. It does not wait until the
// current one is given back; see Wait.
func (k *Keeper) Leave(ctx context.Context) error { return k.passEvent(ctx, eventLeave) }

// Demand reports that a caller waits for an ID that the window does not allow.
// A window that was not used lapses, and only Demand renews it.
func (k *Keeper) Demand(ctx context.Context) error { return k.passEvent(ctx, eventDemand) }

// Status returns the current status, and a channel that is closed when the
// status changes. A new Until is a change too.
func (k *Keeper) Status() (Status, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status, k.changed
}

// Info returns the sequencer as the Keeper last read it. ok is false if it has
// not read it yet.
func (k *Keeper) Info() (info Info, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.info, k.known
}

// Stats returns statistics since NewKeeper.
func (k *Keeper) Stats() KeeperStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// Wait returns nil as soon as ready returns true for the status. It returns an
// error if ctx ends before that, which matches that of ctx and the Err of the
// status, or if the Keeper has ended. Wait calls ready in the caller's
// goroutine, at once and after each change.
func (k *Keeper) Wait(ctx context.Context, ready func(Status) bool) error {
	for {
		status, changed := k.Status()
		if ready(status) {
			return nil
		}
		select {
		case <-changed:
		case <-k.done:
			return errKeeperClosed
		case <-ctx.Done():
			if status.Err != nil {
				return fmt.Errorf("%w: %w", ctx.Err(), status.Err)
			}
			return ctx.Err()
		}
	}
}

// closeLimit is the time that Close has if its context does not say.
const closeLimit = 5 * time.Second

// Close gives the node ID back and ends the Keeper. If the context ends before
// the store has recorded that, or the store has failed 20 times, Close ends the
// Keeper anyway and returns an error: the node ID then becomes free when its
// window ends. A context without a deadline, or one that has already ended,
// counts as one that ends in 5 s, so that of a program that a signal stops will
// do. Calling Close again only waits for the first call.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	closed := k.closed
	k.closed = true
	k.mu.Unlock()
	if !closed {
		// Deferred, because the context is the caller's and may panic: the
		// Keeper ends in any case, and nothing more is used.
		defer k.end()
	}
	ctx, cancel := closingContext(ctx)
	defer cancel()
	if closed {
		select {
		case <-k.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("grant: sequencer %s: another Close has not returned yet: %w", k.settings.name, ctx.Err())
		}
	}
	err := k.Leave(ctx)
	if err == nil {
		var kept error
		err = k.Wait(ctx, func(s Status) bool { kept = s.Err; return s.Phase == Idle })
		if err == nil || errors.Is(err, errKeeperClosed) && kept != nil { // the latter: Abandon was called
			err = kept
		}
	}
	if err != nil {
		return fmt.Errorf("grant: sequencer %s: the node ID was not given back and becomes free when its window "+
			"ends: %w", k.settings.name, err)
	}
	return nil
}

// closingContext returns the context that counts for Close. Without a deadline,
// that the caller's context is cancelled in between changes nothing: a signal
// may come a moment before Close or during it.
func closingContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
}

// Abandon ends the Keeper at once, without another request to the store: the
// node ID becomes free when its window ends. A Close in progress ends too.
func (k *Keeper) Abandon() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.end()
}

// end ends the Keeper, and returns when nothing of it is used any more.
func (k *Keeper) end() {
	k.stop()
	<-k.done
	k.stopHolder.Do(k.holder.Stop)
}
