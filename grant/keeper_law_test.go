package grant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A tellingStore gives every request the same answer, and records the requests
// and their contexts.
type tellingStore struct {
	value   []byte
	applied bool
	err     error
	delay   time.Duration

	identity string
	revision int64
	lost     error // the error that Lineage returns instead
	lineages int

	asked    []string
	contexts []context.Context
	limits   []time.Duration
}

func (s *tellingStore) request(ctx context.Context, what string) {
	s.asked = append(s.asked, what)
	s.note(ctx)
}

func (s *tellingStore) note(ctx context.Context) {
	at, _ := ctx.Deadline()
	s.contexts, s.limits = append(s.contexts, ctx), append(s.limits, time.Until(at))
	time.Sleep(s.delay)
}

func (s *tellingStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.request(ctx, "get "+key)
	return s.value, s.err
}

func (s *tellingStore) CAS(ctx context.Context, key string, old, next []byte) (bool, error) {
	s.request(ctx, fmt.Sprintf("cas %s %s %s", key, old, next))
	return s.applied, s.err
}

func (s *tellingStore) List(ctx context.Context, prefix string, yield func(string, []byte) bool) error {
	s.request(ctx, "list "+prefix)
	value := bytes.Clone(s.value)
	for _, key := range []string{"a", "b"} {
		if !yield(key, value) {
			return errors.New("it has heard enough")
		}
	}
	clear(value) // it belongs to the store
	return s.err
}

func (s *tellingStore) Lineage(ctx context.Context) (string, int64, error) {
	s.lineages++
	s.note(ctx)
	return s.identity, s.revision, s.lost
}

func (s *tellingStore) Time(ctx context.Context) (time.Time, time.Duration, error) {
	s.request(ctx, "time")
	return time.UnixMilli(77_000), 30 * time.Millisecond, s.err
}

func (s *tellingStore) Close() error { return nil }

// checkEnded checks that the contexts of all requests have ended.
func (s *tellingStore) checkEnded(t *testing.T) {
	t.Helper()
	for i, ctx := range s.contexts {
		if ctx.Err() == nil {
			t.Errorf("the context of request %d lives on", i)
		}
	}
}

// A plainStore has no optional interface.
type plainStore struct{ Store }

// TestAskLaw: the call that a Keeper makes for each request of the machine, its
// timeout, how the Keeper evaluates the answer, and what it counts.
func TestAskLaw(t *testing.T) {
	const window = 29_994 * time.Millisecond
	v := []byte("v")
	limits := map[time.Duration]time.Duration{
		0: requestTimeout, time.Second: time.Second / 6, window: window / 6, 30 * time.Second: requestTimeout,
	}
	for _, tt := range []struct {
		a     action
		asked string
		want  event // if there is no error
	}{
		{action{Kind: actionGet, Key: "k"}, "get k", event{Values: [][]byte{v}}},
		{action{Kind: actionGetMany, Keys: []string{"k", "l"}}, "get k get l", event{Keys: []string{"k", "l"}, Values: [][]byte{v, v}}},
		{action{Kind: actionList, Key: "p"}, "list p", event{Keys: []string{"a", "b"}, Values: [][]byte{v, v}}},
		{action{Kind: actionCAS, Key: "k", Old: []byte("o"), Next: []byte("n")}, "cas k o n", event{}},
		// The request took 3 ms, and the resolution of the store's clock is
		// 30 ms; 2 ms are for rounding.
		{action{Kind: actionTime}, "time", event{Time: 77_000, Within: 35}},
	} {
		cas := tt.a.Kind == actionCAS
		check := func(t *testing.T, applied bool, err error, window, limit time.Duration) {
			s := &tellingStore{value: v, applied: applied, err: err, delay: 3 * time.Millisecond}
			k := &Keeper{store: s, settings: settings{name: "s"}, known: window > 0, info: Info{Config: Config{Window: window}}}
			k.lineage = &lineageTracker{store: s, asked: time.Now(), shown: 7, settled: 3}
			e, back := k.askStore(t.Context(), tt.a)
			asked, want, stats := tt.asked, tt.want, KeeperStats{Requests: 1}
			want.Kind, want.Applied, want.Err = eventAnswered, cas && applied, e.Err
			switch {
			case err != nil:
				stats.Failed = 1
				if cas && err == errNoAnswer {
					stats.Unknown = 1
				}
				if tt.a.Kind == actionGetMany {
					asked = "get k"
				}
				want.Keys, want.Values, want.Time, want.Within = e.Keys, e.Values, e.Time, e.Within
			case cas && applied:
				stats.Applied = 1
			case cas:
				stats.Refused = 1
			}
			if back != nil || !reflect.DeepEqual(e, want) || !errors.Is(e.Err, err) || (e.Err == nil) != (err == nil) {
				t.Errorf("%+v, back %v, want %+v with %v", e, back, want, err)
			}
			if got := k.Stats(); got != stats {
				t.Errorf("it counts %+v, want %+v", got, stats)
			}
			if settles := cas && applied && err == nil; k.lineage.settled == 7 != settles {
				t.Errorf("the revision that counts is %d", k.lineage.settled)
			}
			if got := strings.Join(s.asked, " "); got != asked || s.limits[0] != limit {
				t.Errorf("it asks %q, for up to %v, want %q, %v", got, s.limits[0], asked, limit)
			}
			s.checkEnded(t)
		}
		for _, applied := range []bool{false, true} {
			for _, err := range []error{nil, errNoAnswer, fmt.Errorf("no: %w", ErrNotSent)} {
				for window, limit := range limits {
					t.Run(fmt.Sprintf("%s, applied %t, %v, window %v", tt.asked, applied, err, window), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { check(t, applied, err, window, limit) })
					})
				}
			}
		}
	}
	// A damaged record is not the one to be replaced.
	s := &tellingStore{err: fmt.Errorf("%w: %w", ErrNotSent, ErrDamaged)}
	k := &Keeper{store: s, settings: settings{name: "s"}}
	k.lineage = &lineageTracker{store: plainStore{}}
	if e, _ := k.askStore(t.Context(), action{Kind: actionCAS, Key: "k"}); e.Err != nil || e.Applied || k.Stats().Refused != 1 {
		t.Errorf("a write over a damaged record: %+v, %+v", e, k.Stats())
	}
	if _, _, err := storeTime(t.Context(), plainStore{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the time of a store without a clock: %v", err)
	}
}

// TestAskLineage: before every write, and before the configuration is read, the
// store returns its lineage, or the request is not made.
func TestAskLineage(t *testing.T) { synctest.Test(t, testAskLineage) }

func testAskLineage(t *testing.T) {
	config := configKey("s")
	for _, tt := range []struct {
		action action
		asks   bool
	}{
		{action{Kind: actionCAS, Key: "k"}, true}, {action{Kind: actionGet, Key: config}, true}, {action{Kind: actionGetMany, Keys: []string{"k", config}}, true},
		{action{Kind: actionGet, Key: "k"}, false}, {action{Kind: actionGetMany, Keys: []string{"k"}}, false}, {action{Kind: actionList, Key: "k"}, false}, {action{Kind: actionTime}, false},
	} {
		for _, lost := range []error{nil, errNoAnswer} {
			for _, wentBack := range []bool{false, true} {
				s := &tellingStore{identity: "one", revision: 5, lost: lost, delay: 3 * time.Second}
				k := &Keeper{store: s, settings: settings{name: "s"}}
				l := &lineageTracker{store: s, identity: "one", durable: 5}
				time.Sleep(time.Second) // after an earlier answer
				if wentBack {
					l.durable = 6
				}
				k.lineage = l
				e, back := k.askStore(t.Context(), tt.action)
				what := fmt.Sprintf("%+v, history %v, went back %t", tt.action, lost, wentBack)
				if refused := tt.asks && (lost != nil || wentBack); !refused {
					if back != nil || e.Err != nil || len(s.asked) == 0 || s.lineages > 0 != tt.asks || s.limits[0] != 5*time.Second || s.limits[s.lineages] != 5*time.Second {
						t.Errorf("%s: %+v, back %v, it asks %v, for up to %v", what, e, back, s.asked, s.limits)
					}
					continue
				}
				asked := 0
				if lost == nil { // the configuration, which may have a new floor
					asked = 1
					if back == nil || back.Kind != eventWentBack || !slices.EqualFunc(back.Values, [][]byte{s.value}, bytes.Equal) {
						t.Errorf("%s: it reports %+v", what, back)
					}
				}
				if !errors.Is(e.Err, ErrNotSent) || lost != nil && !errors.Is(e.Err, lost) || lost != nil && back != nil || len(s.asked) != asked || e.Kind != eventAnswered {
					t.Errorf("%s: %+v, back %v, it asks %v", what, e, back, s.asked)
				}
				if got := k.Stats(); got != (KeeperStats{Requests: 1, Failed: 1}) {
					t.Errorf("%s: it counts %+v", what, got)
				}
				s.checkEnded(t)
			}
		}
	}
}

// TestWentBackLaw: a store went back if it has another identity, or a revision
// earlier than one that was followed by an applied write and another answer. An
// answer is valid for a second.
func TestWentBackLaw(t *testing.T) {
	for _, identity := range []string{"one", "two"} {
		for _, durable := range []int64{math.MinInt64, 4} {
			for _, settled := range []int64{math.MinInt64, 4, 6} {
				for revision := int64(3); revision <= 7; revision++ {
					synctest.Test(t, func(t *testing.T) {
						s := &tellingStore{identity: identity, revision: revision}
						l := &lineageTracker{store: s, identity: "one", shown: 5, settled: max(settled, durable), durable: durable, asked: time.Now()}
						was := *l
						time.Sleep(time.Second - 1)
						if back, err := l.wentBack(t.Context()); back || err != nil || s.lineages != 0 {
							t.Errorf("within a second: %t, %v, asked %d times", back, err, s.lineages)
						}
						time.Sleep(time.Nanosecond)
						back, err := l.wentBack(t.Context())
						want := lineageTracker{store: s, identity: identity, shown: revision, settled: was.settled, durable: was.settled, asked: time.Now()}
						went := identity == "two" || revision < durable
						switch {
						case went:
							want.settled, want.durable = math.MinInt64, math.MinInt64
						case revision < was.settled:
							want.settled, want.durable = was.durable, was.durable
						}
						if back != went || err != nil || s.lineages != 1 || *l != want {
							t.Errorf("%s at %d after %+v: %t, %v, %+v, want %t, %+v", identity, revision, was, back, err, *l, went, want)
						}
					})
				}
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := &tellingStore{identity: "one", revision: 5}
		l := newLineageTracker(s)
		if back, err := l.wentBack(t.Context()); back || err != nil || s.lineages != 1 || l.identity != "one" {
			t.Errorf("the first time: %t, %v", back, err)
		}
		s = &tellingStore{lost: errNoAnswer}
		l = &lineageTracker{store: s}
		for range 2 { // an error is not cached
			if back, err := l.wentBack(t.Context()); back || err != errNoAnswer {
				t.Errorf("no answer: %t, %v", back, err)
			}
		}
		if s.lineages != 2 {
			t.Errorf("it was asked %d times", s.lineages)
		}
	})
}

// A countingHolder fails on request, and counts seals.
type countingHolder struct {
	err   error
	seals *int
}

func (h countingHolder) Begin(firn.Grant) error { return h.err }
func (h countingHolder) Extend(time.Time) error { return h.err }
func (h countingHolder) Stop()                  { *h.seals++ }
func (h countingHolder) Used() time.Time        { return time.Time{} }

// TestActLaw: what a Keeper counts, logs and passes on for each action and each
// change of status.
func TestActLaw(t *testing.T) {
	const grantLine, windowLine = "grant not usable", "window not extended"
	var log bytes.Buffer
	acting := func(h Holder) *Keeper {
		log.Reset()
		return &Keeper{holder: h, changed: make(chan struct{}), settings: settings{MemberOptions: MemberOptions{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}}}
	}
	for _, err := range []error{nil, errNoAnswer} {
		k := acting(countingHolder{err: err})
		k.perform(action{Kind: actionBegin})
		if got := k.Stats(); got != (KeeperStats{Acquired: 1}) || strings.Contains(log.String(), grantLine) != (err != nil) {
			t.Errorf("begin, %v: %+v, %s", err, got, &log)
		}
		k = acting(countingHolder{err: err})
		k.perform(action{Kind: actionExtend})
		if got := k.Stats(); got != (KeeperStats{Renewed: 1}) || strings.Contains(log.String(), windowLine) != (err != nil) {
			t.Errorf("extend, %v: %+v, %s", err, got, &log)
		}
	}
	spans := map[Alarm]bool{AlarmCloned: true, AlarmStoreWentBack: true, AlarmFencedSpan: true, AlarmWindowsOverlapped: true}
	for kind := AlarmCloned; kind < numAlarms; kind++ {
		k := acting(countingHolder{})
		i := raisedAlarm{Kind: kind, Node: 7, From: 1, Until: 2}
		if !spans[kind] && kind != AlarmTakenOver {
			i = raisedAlarm{Kind: kind, By: 3}
		}
		k.perform(action{Kind: actionAlarm, Alarm: i})
		want := KeeperStats{}
		want.Alarms[i.Kind] = 1
		if kind == AlarmTakenOver {
			want.Lost = 1
		}
		if got := k.Stats(); got != want || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("alarm %d: %+v, %s", kind, got, &log)
		}
		const span = "node=7 from=1970-01-01T00:00:00.001Z until=1970-01-01T00:00:00.002Z"
		if strings.Contains(log.String(), span) != spans[kind] {
			t.Errorf("alarm %v logs %s", kind, &log)
		}
	}
	errs := []error{nil, errNoAnswer, errors.New(errNoAnswer.Error()), ErrDetached}
	for before := Idle; before <= Leaving; before++ {
		for now := Idle; now <= Leaving; now++ {
			for _, was := range errs {
				for _, err := range errs {
					for _, gaveBack := range []bool{false, true} {
						k := acting(countingHolder{})
						k.status = Status{Phase: before, Err: was}
						_, changed := k.Status()
						status := Status{Phase: now, Err: err}
						k.perform(action{Kind: actionReport, Status: status, GaveBack: gaveBack})
						what := fmt.Sprintf("%v with %v after %v with %v, given back %t", now, err, before, was, gaveBack)
						var want KeeperStats
						left := before == Leaving && (now == Idle || now == Joining)
						if left && gaveBack {
							want.Released = 1
						}
						if got := k.Stats(); got != want {
							t.Errorf("%s: it counts %+v", what, got)
						}
						lines := map[string]bool{
							"node ID given back":     left && gaveBack,
							"node ID not given back": left && !gaveBack && now == Idle && err != nil,
							"request failed":         err != nil && (was == nil || err.Error() != was.Error()),
						}
						for line, want := range lines {
							if got := strings.Contains(log.String(), `"`+line+`"`); got != want {
								t.Errorf("%s: it logs %q %t", what, line, got)
							}
						}
						select {
						case <-changed:
						default:
							t.Errorf("%s: it is not reported", what)
						}
						s, next := k.Status()
						if s != status || next == changed {
							t.Errorf("%s: %+v", what, s)
						}
					}
				}
			}
		}
	}
	k := acting(countingHolder{})
	k.perform(action{Kind: actionReport, Status: Status{Phase: Joining}})
	if _, known := k.Info(); known {
		t.Error("it knows a configuration that was not read")
	}
}

// TestNewKeeperLaw: the defaults of a Keeper, and that it uses the options that
// are set.
func TestNewKeeperLaw(t *testing.T) {
	name := must.Get(os.Hostname())(t)
	made := func(s MemberOptions) settings {
		seals := 0
		k := NewKeeper(plainStore{}, "s", nil, countingHolder{seals: &seals}, &s)
		if err := k.Close(t.Context()); err != nil || seals != 1 { // whatever the machine did
			t.Errorf("Close: %v after %d seals", err, seals)
		}
		if err := k.Join(t.Context()); !errors.Is(err, firn.ErrClosed) {
			t.Errorf("Join after Close: %v", err)
		}
		return k.settings
	}
	s := made(MemberOptions{})
	if one, two := s.random(), s.random(); s.host != name || one == two || s.storeClock {
		t.Errorf("with nothing given: %+v", s)
	}
	var log bytes.Buffer
	set := made(MemberOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	set.Logger.Info("x")
	if set.Now == nil || !strings.Contains(log.String(), "sequencer=s") {
		t.Errorf("%+v, log %s", set, &log)
	}
}

// TestKeeperWaits: a Wait whose context ends returns what prevented the member.
func TestKeeperWaits(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{nil, errNoAnswer} {
		k := &Keeper{status: Status{Err: err}, done: make(chan struct{})}
		got := k.Wait(ended, func(Status) bool { return false })
		if !errors.Is(got, context.Canceled) || errors.Is(got, errNoAnswer) != (err != nil) || err == nil && got != context.Canceled {
			t.Errorf("status %v: %v", err, got)
		}
		if err := k.Wait(ended, func(Status) bool { return true }); err != nil {
			t.Errorf("what it waits for is so: %v", err)
		}
	}
}
