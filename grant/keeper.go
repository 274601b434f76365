package grant

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/mutant"
)

// A Holder uses what a Keeper obtains: it is the side of the generator. Its
// methods are called by one goroutine at a time and return soon.
type Holder interface {
	// Begin uses a grant in place of the one before, with times above all that
	// was used before.
	Begin(g firn.Grant) error

	// Extend makes the window of the present grant end later.
	Extend(until time.Time) error

	// Seal ends the use of the present grant: nothing of it is used after it
	// has returned. Begin may follow.
	Seal()

	// Used is the exclusive end of all times that were used under any grant, or
	// the zero time if none was. It never goes back.
	Used() time.Time
}

// KeeperOptions are what a Keeper can be told. The zero KeeperOptions and nil
// mean the defaults.
//
// The Keeper's goroutine calls what is given here, the Holder and, in another
// one, the Store. A panic there ends the process. A function that waits holds
// renewals up: it must not call Attach, Release, Demand, Wait or Close, nor
// wait for an ID of the same sequencer.
type KeeperOptions struct {
	// Now is the clock; nil is the system's.
	Now func() time.Time

	// Timeout is how long a request to the store may take before its result
	// counts as unknown. Zero means 5 seconds. It is never longer than a sixth of
	// the sequencer's window, so that one lost request does not cost the window.
	Timeout time.Duration

	// Logger gets what people should know; nil discards it.
	Logger *slog.Logger

	// OnStatus is called with every new status, in order, by one goroutine; it
	// must return soon. It may be nil.
	OnStatus func(Status)

	// OnAlarm is called with every alarm, as OnStatus is.
	OnAlarm func(AlarmInfo)
}

// A Keeper keeps a node ID of a sequencer for a Holder: it drives a Machine
// with a clock and a Store. It is safe for use by many goroutines.
//
// A Keeper must be made by NewKeeper, and ends with Close.
type Keeper struct {
	store   Store
	holder  Holder
	name    string
	options KeeperOptions
	start   time.Time

	calls   chan call
	answers chan Event
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex // guards what follows
	status  Status
	info    Info
	known   bool          // info was read
	changed chan struct{} // closed, and replaced, when status changes or a window grows
	stats   KeeperStats
	closed  bool
}

// KeeperStats counts what a Keeper has done since it was made.
type KeeperStats struct {
	Requests uint64 // to the store
	Failed   uint64 // of these, those with an error
	Unknown  uint64 // of these, compare-and-swaps whose result was unknown
	Refused  uint64 // compare-and-swaps that were not applied, as the record was another
	Applied  uint64 // compare-and-swaps that were
	Acquired uint64 // node IDs
	Renewed  uint64 // windows
	Released uint64 // node IDs that were given back
	Lost     uint64 // node IDs that another has taken over
	Expired  uint64 // windows that ended because they could not be renewed
	Alarms   uint64
}

// NewKeeper makes a Keeper that holds nothing until Attach. The context ends
// with Close. Settings.Random and Host may be left out.
func NewKeeper(store Store, s Settings, holder Holder, o *KeeperOptions) *Keeper {
	k := &Keeper{
		store: store, holder: holder, name: s.Name, start: time.Now(),
		calls: make(chan call), answers: make(chan Event, 1),
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	if o != nil {
		k.options = *o
	}
	if k.options.Now == nil {
		k.options.Now = time.Now
	}
	if k.options.Timeout <= 0 {
		k.options.Timeout = 5 * time.Second
	}
	if k.options.Logger == nil {
		k.options.Logger = slog.New(slog.DiscardHandler)
	}
	k.options.Logger = k.options.Logger.With("sequencer", s.Name)
	if s.Random == nil {
		s.Random = random
	}
	if s.Host == "" {
		s.Host, _ = os.Hostname()
	}
	_, s.StoreClock = As[Clock](store)
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	go k.run(ctx, NewMachine(s))
	return k
}

// A call is an event from outside the Keeper's goroutine.
type call struct {
	kind  EventKind
	heard chan struct{} // closed when the step is done
}

// random is a random number of the system's. A copy of a virtual machine gets
// others, where the system knows that it is one.
func random() uint64 {
	var b [8]byte
	_, _ = crand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// run is the Keeper's goroutine. At most one request is under way beside it.
//
// It may end in a panic of code that is not ours. Then nothing that is deferred
// may wait, or the process would hang and not end; TestKeeperPanics.
func (k *Keeper) run(ctx context.Context, m *Machine) {
	defer k.ended()
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	ending := time.NewTimer(time.Hour) // of a window that could not be renewed
	ending.Stop()
	defer ending.Stop()
	outage := outage{log: k.options.Logger}
	var requests sync.WaitGroup

	hints := make(<-chan struct{})
	if w, ok := As[Watcher](k.store); ok {
		hints = w.Watch(ctx, configKey(k.name))
	}
	lineage := lineageOf{store: k.store, shown: math.MinInt64, settled: math.MinInt64, durable: math.MinInt64}
	for {
		var e Event
		var heard chan struct{}
		select {
		case <-ctx.Done():
			requests.Wait()
			return
		case c := <-k.calls:
			if heard = c.heard; c.kind == Attach && k.isClosed() {
				close(heard) // what was said before Close, and comes after it
				continue
			}
			e.Kind = c.kind
		case e = <-k.answers:
		case <-timer.C: // a Tick
		case <-ending.C: // likewise
		case _, ok := <-hints:
			if !ok {
				hints = nil
				continue
			}
			e.Kind = Hint
		}
		for again := true; again; {
			again = false
			for _, a := range k.step(m, e) {
				switch {
				case a.IsRequest():
					requests.Go(func() { k.request(ctx, a, &lineage) })
				case a.Kind == Timer:
					timer.Reset(time.Until(k.start.Add(time.Duration(a.At) * time.Millisecond)))
				case a.Kind == Seal:
					if mutant.On(mutant.SealAsync) {
						go k.holder.Seal()
					} else {
						k.holder.Seal()
					}
					e, again = Event{Kind: Sealed}, true
				default:
					k.act(m, a)
				}
			}
		}
		ended := outage.ended
		if left := outage.check(m); left > 0 {
			ending.Reset(left)
		} else {
			ending.Stop()
		}
		if outage.ended && !ended {
			k.count(func(s *KeeperStats) { s.Expired++ })
		}
		if heard != nil {
			close(heard)
		}
	}
}

// request makes a request and passes the answer on.
func (k *Keeper) request(ctx context.Context, a Action, l *lineageOf) {
	answer := Event{Kind: Answered, Err: errStoreQuit}
	// Deferred, because a Store may end the goroutine: one of a test that calls
	// t.Fatal does. There is room, as it is one request at a time.
	defer func() { k.answers <- answer }()
	e, back := k.ask(ctx, a, l)
	if back {
		_ = k.send(ctx, WentBack)
	}
	answer = e
}

var errStoreQuit = errors.New("grant: the store ended the goroutine that called it (runtime.Goexit)")

// ended lets go of all who wait for the Keeper.
func (k *Keeper) ended() {
	k.stop()
	close(k.done)
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// step passes an event to the machine with the present times.
func (k *Keeper) step(m *Machine, e Event) []Action {
	return m.Step(e.At(k.options.Now(), time.Since(k.start), k.holder.Used()))
}

// act does what is not a request.
func (k *Keeper) act(m *Machine, a Action) {
	log := k.options.Logger
	switch a.Kind {
	case Begin:
		g := a.Grant()
		if err := k.holder.Begin(g); err != nil {
			// The window lapses unused, and another is taken when IDs are wanted.
			log.Error("grant not usable", "node", a.Node, "error", err)
		}
		k.count(func(s *KeeperStats) { s.Acquired++ })
		log.Info("node ID acquired", "node", a.Node, "from", g.From, "until", g.Until)
	case Extend:
		if err := k.holder.Extend(a.End()); err != nil {
			log.Error("window not extended", "node", a.Node, "error", err)
		}
		k.count(func(s *KeeperStats) { s.Renewed++ })
	case Alarm:
		k.count(func(s *KeeperStats) { s.Alarms++ })
		k.tell(a.Alarm)
		if k.options.OnAlarm != nil {
			k.options.OnAlarm(a.Alarm)
		}
	case Report:
		k.mu.Lock()
		before := k.status
		k.status = a.Status
		if info, ok := m.Info(); ok {
			k.info, k.known = info, true
		}
		close(k.changed)
		k.changed = make(chan struct{})
		k.mu.Unlock()
		if a.Status.Phase == Losing && before.Phase != Losing {
			k.count(func(s *KeeperStats) { s.Lost++ })
		}
		if before.Phase == Leaving && (a.Status.Phase == Idle || a.Status.Phase == Joining) {
			switch {
			case m.gaveBack:
				k.count(func(s *KeeperStats) { s.Released++ })
				log.Info("node ID given back", "node", before.Node)
			case a.Status.Phase == Idle && a.Status.Err != nil:
				log.Info("node ID not given back", "node", before.Node, "until", timeOf(before.Until), "error", a.Status.Err)
			}
		}
		if err := a.Status.Err; err != nil && !sameError(err, before.Err) {
			log.Debug("request failed", "phase", a.Status.Phase.String(), "error", err) // see outage
		}
		if k.options.OnStatus != nil {
			k.options.OnStatus(a.Status)
		}
	}
}

func (k *Keeper) count(add func(*KeeperStats)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	add(&k.stats)
}

// tell logs an alarm.
func (k *Keeper) tell(i AlarmInfo) {
	log := k.options.Logger
	switch i.Kind {
	case Cloned:
		log.Error("this process was cloned: the IDs of this node ID in this span of time may exist twice",
			"node", i.Node, "from", timeOf(i.From), "until", timeOf(i.Until))
	case RolledBack:
		log.Error("the store went back to an earlier state: no node ID is acquired or renewed until the sequencer is fenced (firn node fence)")
	case ClockJumped:
		log.Warn("the clock jumped ahead", "by", i.By)
	case Fenced:
		log.Error("the sequencer was fenced below the end of this window: the IDs of this node ID in this span of time may exist twice",
			"node", i.Node, "from", timeOf(i.From), "until", timeOf(i.Until))
	case StoreClockOff:
		log.Warn("the store's clock differs from this machine's and those of other members", "by", i.By)
	case MembersAhead:
		log.Warn("clocks of other members are ahead of this machine's and the store's", "by", i.By)
	case TakenOver:
		log.Warn("the node ID was taken over; another is being acquired", "node", i.Node, "until", timeOf(i.Until))
	}
}

// ask makes a request. back says that the store is known to have gone back.
func (k *Keeper) ask(ctx context.Context, a Action, l *lineageOf) (e Event, back bool) {
	e.Kind = Answered
	limit := k.options.Timeout
	if info, ok := k.Info(); ok {
		limit = min(limit, info.Config.Window/6)
	}
	// Before the configuration is read as well, so that the floor of a fence is
	// not known before what it was for. It has a time of its own: where a store is
	// slow as many ask it, the second half of one time would never do.
	if a.Kind == CAS || a.Key == configKey(k.name) || slices.Contains(a.Keys, configKey(k.name)) {
		asking, cancel := context.WithTimeout(ctx, limit)
		back, err := l.wentBack(asking)
		cancel()
		if back || err != nil {
			e.Err = ErrNotSent
			if err != nil {
				e.Err = fmt.Errorf("%w: the store does not say where it is in its history: %w", ErrNotSent, err)
			}
			k.count(func(s *KeeperStats) { s.Requests, s.Failed = s.Requests+1, s.Failed+1 })
			return e, back
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	switch a.Kind {
	case Get:
		var v []byte
		v, e.Err = get(ctx, k.store, a.Key)
		e.Values = [][]byte{v}
	case GetMany:
		e.Keys = a.Keys
		e.Values, e.Err = getMany(ctx, k.store, a.Keys)
	case List:
		e.Err = k.store.List(ctx, a.Key, func(key string, value []byte) bool {
			e.Keys = append(e.Keys, key)
			e.Values = append(e.Values, append([]byte(nil), value...))
			return true
		})
	case CAS:
		switch e.Applied, e.Err = k.store.CAS(ctx, a.Key, a.Old, a.Next); {
		case e.Applied && e.Err == nil:
			l.settled = max(l.settled, l.shown)
		case errors.Is(e.Err, ErrDamaged) && errors.Is(e.Err, ErrNotSent):
			e.Err = nil // what is there is not what was to be replaced
		}
	case Time:
		e.Time, e.Within, e.Err = storeTime(ctx, k.store)
	}
	k.count(func(s *KeeperStats) {
		s.Requests++
		switch {
		case e.Err != nil:
			s.Failed++
			if a.Kind == CAS && !errors.Is(e.Err, ErrNotSent) {
				s.Unknown++
			}
		case a.Kind == CAS && !e.Applied:
			s.Refused++
		case a.Kind == CAS:
			s.Applied++
		}
	})
	return e, false
}

// storeTime asks a store for its time, in Unix milliseconds: now it is at least
// this, and at most within later.
func storeTime(ctx context.Context, s Store) (at, within int64, err error) {
	clock, ok := As[Clock](s)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	began := time.Now()
	t, resolution, err := clock.Time(ctx)
	if err != nil {
		return 0, 0, err
	}
	return t.UnixMilli(), (time.Since(began) + resolution).Milliseconds() + 2, nil
}

// getMany reads many keys, in one round trip where the store can.
func getMany(ctx context.Context, s Store, keys []string) ([][]byte, error) {
	if g, ok := As[MultiGetter](s); ok {
		return g.GetMany(ctx, keys)
	}
	values := make([][]byte, len(keys))
	for i, key := range keys {
		v, err := get(ctx, s, key)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// lineageOf remembers how far a store has come. It is used by one goroutine at
// a time.
//
// A revision may include writes that only a read has shown, and that a failover
// loses without harm. So a revision counts when a write that followed it was
// applied, which makes durable what the server had shown before, and when the
// next answer is no smaller: the first answer and the write may have come from
// two servers.
type lineageOf struct {
	store    Store
	identity string
	shown    int64     // the revision of the last answer
	settled  int64     // the greatest that a write that was applied has followed
	durable  int64     // the greatest of these that an answer has followed
	asked    time.Time // when it said so
}

// lineageFor is how long an answer to where a store is counts: a member that
// acquires a number asks once and not three times, and no store goes back or
// fails over and is there again in that time.
const lineageFor = time.Second

// wentBack asks the store where it is in its history. While it does not say,
// nothing is written: it may have gone back.
func (l *lineageOf) wentBack(ctx context.Context) (bool, error) {
	s, ok := As[Lineage](l.store)
	if !ok || time.Since(l.asked) < lineageFor {
		return false, nil
	}
	identity, revision, err := s.Lineage(ctx)
	if err != nil {
		if mutant.On(mutant.LineageIgnored) {
			return false, nil
		}
		return false, err
	}
	back := l.identity != "" && (identity != l.identity || revision < l.durable)
	switch {
	case back:
		l.settled, l.durable = math.MinInt64, math.MinInt64
	case revision < l.settled:
		l.settled = l.durable // the write was applied by another server
	default:
		l.durable = l.settled
	}
	if mutant.On(mutant.RevisionOnRead) {
		l.durable = revision
	}
	l.identity, l.shown, l.asked = identity, revision, time.Now()
	return back, nil
}

// send passes an event on, and waits until the step is done that it makes.
func (k *Keeper) send(ctx context.Context, kind EventKind) error {
	done, heard := ctx.Done(), make(chan struct{})
	select {
	case k.calls <- call{kind, heard}:
	case <-k.done:
		return errKeeperClosed
	case <-done:
		return ctx.Err()
	}
	select {
	case <-heard:
		return nil
	case <-k.done:
		return errKeeperClosed
	case <-done:
		return ctx.Err()
	}
}

var errKeeperClosed = errors.New("grant: the keeper is closed")

// isClosed reports whether Close was called.
func (k *Keeper) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// Attach says that a node ID is wanted. It does not wait for one, see Wait; but
// when it has returned nil, what Status says of an earlier try is over. After
// Close it is an error, or does nothing.
func (k *Keeper) Attach(ctx context.Context) error {
	if k.isClosed() {
		return errKeeperClosed
	}
	return k.send(ctx, Attach)
}

// Release says that none is wanted any more. It does not wait until the one
// that is held is given back; see Wait.
func (k *Keeper) Release(ctx context.Context) error { return k.send(ctx, Release) }

// Demand says that the window does not allow an ID that somebody waits for.
func (k *Keeper) Demand(ctx context.Context) error { return k.send(ctx, Demand) }

// Status is what the member has now, and a channel that is closed when that
// changes.
func (k *Keeper) Status() (Status, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status, k.changed
}

// Info is the sequencer as it was read last; ok is false before that.
func (k *Keeper) Info() (info Info, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.info, k.known
}

// Stats is what was done since NewKeeper.
func (k *Keeper) Stats() KeeperStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stats
}

// Wait waits until is reports true of the status.
func (k *Keeper) Wait(ctx context.Context, is func(Status) bool) error {
	for {
		status, changed := k.Status()
		if is(status) {
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

// Close gives the node ID back and ends the Keeper. When the context ends
// before the store has taken it, or the store has failed 20 times, Close ends
// the Keeper all the same and returns an error: the number is then free when
// its window is over. Closing again only waits for that.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	closed := k.closed
	k.closed = true
	k.mu.Unlock()
	if closed {
		select {
		case <-k.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("grant: sequencer %s: another Close has not returned yet: %w", k.name, ctx.Err())
		}
	}
	// Deferred, because the context is the caller's and may panic: the Keeper
	// ends whatever happens, and nothing more is used.
	defer func() {
		k.stop()
		<-k.done
		k.holder.Seal()
	}()
	err := k.Release(ctx)
	if err == nil {
		var kept error
		if err = k.Wait(ctx, func(s Status) bool { kept = s.Err; return s.Phase == Idle }); err == nil {
			err = kept
		}
	}
	if err != nil {
		return fmt.Errorf("grant: sequencer %s: the node ID was not given back; it is free when its window ends: %w", k.name, err)
	}
	return nil
}
