// Package members lets the servers of one store know of each other. Each writes
// who it is into the store, again and again, and anybody can read it.
//
// It is for people, for finding a server to ask, and for showing that two
// servers use the same store. A member may be there and not listed, or listed
// and gone for half a minute, and then another program may have its address: an
// address proves nothing.
package members

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
)

// A Member is a server as it has announced itself.
type Member struct {
	ID        string    `json:"id"`                // random, of this run of it
	Host      string    `json:"host"`              // its machine's name
	Address   string    `json:"address,omitempty"` // where others reach it: HOST:PORT; empty if nowhere
	TLS       bool      `json:"tls,omitempty"`     // whether with TLS
	Version   string    `json:"version"`           // of firn
	Started   time.Time `json:"started"`           // by its clock, like all that follow
	Seen      time.Time `json:"seen"`              // when it wrote this
	Until     time.Time `json:"until"`             // it is gone where nothing newer is written before
	Holds     []Held    `json:"holds"`             // its node IDs; the first MaxHeld, or fewer with long names
	IDs       uint64    `json:"ids"`               // made since it was started
	Rate      float64   `json:"rate"`              // IDs per second, since it wrote before
	Forwarded uint64    `json:"forwarded"`         // calls that it gave to others since it was started
}

// A Held is a node ID of a member.
type Held struct {
	Sequencer string    `json:"sequencer"`
	Node      uint64    `json:"node"`
	Until     time.Time `json:"until"`
	IDs       uint64    `json:"ids"` // made of the sequencer since the member was started
}

// For returns the Member for someone who sees some sequencers only: with the
// node IDs and IDs of these, and without its rate and the calls that it
// forwarded, which are of all.
func (m Member) For(sees func(sequencer string) bool) Member {
	holds := make([]Held, 0, len(m.Holds))
	m.IDs, m.Rate, m.Forwarded = 0, 0, 0
	for _, h := range m.Holds {
		if sees(h.Sequencer) {
			holds = append(holds, h)
			m.IDs += h.IDs
		}
	}
	m.Holds = holds
	return m
}

// MaxHeld is how many numbers a Member has at most: a record is short.
const MaxHeld = 20

// Keys are of this form, with the numbers from 0 on: a record whose member is
// gone is used by the next one, as no store removes any.
const prefix = "members/v1/"

func key(n int) string { return fmt.Sprintf("%s%04d", prefix, n) }

// most is how many members there can be.
const most = 10_000

// A Lister lists the members of a store. It must be made by NewLister, and is
// safe for use by many goroutines at once.
//
// The time at which a member is gone is by the clock of that member. If that
// was far ahead, the record of a member that has crashed is good for as long,
// and no other member takes it. So the Lister also remembers when it first saw
// what a member wrote last.
type Lister struct {
	store grant.Store

	mu    sync.Mutex // guards what follows
	wrote map[string]written
}

// A written is a member's last write, and when a Lister first saw it.
type written struct{ seen, first time.Time }

// NewLister makes a Lister.
func NewLister(s grant.Store) *Lister { return &Lister{store: s} }

// List returns the members that are there, by their hosts: those that have not
// ended by the clock now, unless they have written nothing new for as long as a
// record lasts. It costs a List of the store.
func (l *Lister) List(ctx context.Context, now time.Time) ([]Member, error) {
	var all []Member
	asked := time.Now()
	err := l.store.List(ctx, prefix, func(_ string, value []byte) bool {
		var m Member
		if json.Unmarshal(value, &m) == nil && m.Until.After(now) {
			all = append(all, m)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, l.silent(all, asked))
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// silent reports which of all members, as a read that began at asked found
// them, have written nothing for as long as their records last. It forgets
// those that are not listed.
func (l *Lister) silent(all []Member, asked time.Time) func(Member) bool {
	got := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	wrote := make(map[string]written, len(all))
	for _, m := range all {
		w, known := l.wrote[m.ID]
		if !known || !w.seen.Equal(m.Seen) {
			w = written{m.Seen, got}
		}
		wrote[m.ID] = w
	}
	l.wrote = wrote
	return func(m Member) bool { return asked.Sub(wrote[m.ID].first) > m.Until.Sub(m.Seen) }
}

// Options are what an Announcer can be told. The zero Options mean the
// defaults.
type Options struct {
	// Every is how often a member writes; zero means 10 seconds. It counts as gone
	// after three times that.
	Every time.Duration

	// Now is the clock; nil is the system's.
	Now func() time.Time

	// Log is told when the store does not take what is written, and when it does
	// again; nil means nobody is.
	Log *slog.Logger
}

// An Announcer writes who a server is. It must be made by New.
type Announcer struct {
	store grant.Store
	o     Options
	id    string
	tried chan struct{} // closed when it has tried to write once
	left  chan struct{} // closed by Leave
	leave sync.Once
	news  chan struct{} // of size 1: Update was called

	// Of Run alone.
	slot   int // -1 if none
	value  []byte
	ids    uint64
	wrote  time.Time
	nonces nonces

	mu     sync.Mutex // guards what follows
	proof  Proof      // as it was written last
	proved time.Time  // when, by the steady clock
}

// New makes an Announcer, which writes nothing before Run.
func New(s grant.Store, o Options) *Announcer {
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Announcer{store: s, o: o, id: rand.Text(), tried: make(chan struct{}), left: make(chan struct{}), news: make(chan struct{}, 1), slot: -1}
}

// ID is what the member is listed as.
func (a *Announcer) ID() string { return a.id }

// Leave has Run write at once that the member is gone, so that no other server
// asks it. Run goes on writing all the same: this server may still ask others,
// which look for its proof, and no other member takes its record before Run
// ends.
func (a *Announcer) Leave() { a.leave.Do(func() { close(a.left) }) }

// Update has Run write soon, as what describe says has changed: within a tenth
// of Options.Every, so that several changes cost one write.
func (a *Announcer) Update() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// Run writes until ctx is done, and then, within a second, that the member is
// gone. It calls describe before it writes, and fills in ID, Seen, Until and
// Rate. It is called once.
func (a *Announcer) Run(ctx context.Context, describe func() Member) {
	tick := time.NewTicker(a.o.Every)
	defer tick.Stop()
	var failing time.Time // since when; zero where it does not
	long, left := 3*a.o.Every, a.left
	for first := true; ; first = false {
		call, cancel := context.WithTimeout(ctx, a.o.Every)
		err := a.write(call, describe(), long, 3*a.o.Every)
		cancel()
		if first {
			close(a.tried)
		}
		switch {
		case err == nil && !failing.IsZero():
			a.o.Log.Info("this server is listed again", "after", time.Since(failing).Round(time.Millisecond).String())
			failing = time.Time{}
		case err != nil && ctx.Err() == nil && failing.IsZero():
			failing = time.Now()
			a.o.Log.Warn("this server is not listed: the store does not take it", "error", err)
		}
		var again <-chan time.Time // nil if all is well
		if !failing.IsZero() {
			again = time.After(a.o.Every / 5) // other servers do not answer one that is not listed
		}
		for news, wait := a.news, true; wait; {
			wait = false
			select {
			case <-tick.C:
			case <-again:
			case <-news:
				news, wait = nil, true
				if again == nil {
					again = time.After(a.o.Every / 10)
				}
			case <-left:
				long, left = 0, nil
			case <-ctx.Done():
				if a.slot >= 0 {
					last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
					_ = a.write(last, describe(), 0, 0) // else it is gone a little later
					cancel()
				}
				return
			}
		}
	}
}

// write writes the member, which is there for long. Its record is its own for
// kept.
func (a *Announcer) write(ctx context.Context, described Member, long, kept time.Duration) error {
	begin := time.Now()
	next := a.nonces.next(begin)
	m := record{Member: described, Nonce: next.now, Before: next.before}
	now := a.o.Now().Truncate(time.Millisecond)
	if kept > long {
		m.Kept = now.Add(kept)
	}
	m.ID, m.Seen, m.Until = a.id, now, now.Add(long)
	if len(m.Holds) > MaxHeld {
		m.Holds = m.Holds[:MaxHeld]
	}
	if passed := now.Sub(a.wrote); !a.wrote.IsZero() && passed > 0 && m.IDs >= a.ids {
		m.Rate = float64(m.IDs-a.ids) / passed.Seconds()
	}
	value, err := json.Marshal(m)
	for err == nil && len(value) > grant.MaxValue && len(m.Holds) > 0 {
		m.Holds = m.Holds[:len(m.Holds)*3/4] // their names are long
		value, err = json.Marshal(m)
	}
	if err != nil {
		return err
	}
	if a.slot >= 0 {
		ok, err := a.store.CAS(ctx, key(a.slot), a.value, value)
		if err != nil && !errors.Is(err, grant.ErrNotSent) {
			// Either may be there now; the next write finds out.
			if there, e := a.store.Get(ctx, key(a.slot)); e == nil && string(there) != string(a.value) {
				ok, err = string(there) == string(value), nil
			}
		}
		if err != nil {
			return err
		}
		if !ok {
			a.slot = -1 // another one thought that this one was gone
		}
	}
	if a.slot < 0 {
		if err := a.take(ctx, now, value); err != nil {
			return err
		}
	}
	a.value, a.ids, a.wrote, a.nonces = value, m.IDs, now, next
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proof, a.proved = Proof{Member: a.id, Record: a.slot, Nonce: next.now}, begin
	return nil
}

// take finds a record that is free, and writes into it. Where the store tells
// its time, the record is free by that too: a clock that is ahead would
// otherwise take those of members that live, and other servers would refuse
// these until they notice.
func (a *Announcer) take(ctx context.Context, now time.Time, value []byte) error {
	if c, ok := grant.As[grant.Clock](a.store); ok {
		if t, _, err := c.Time(ctx); err == nil && t.Before(now) {
			now = t
		}
	}
	type free struct {
		slot int
		old  []byte
	}
	for range 10 {
		var found []free
		last := -1
		err := a.store.List(ctx, prefix, func(k string, old []byte) bool {
			n, err := strconv.Atoi(strings.TrimPrefix(k, prefix))
			if err != nil || k != key(n) {
				return true
			}
			last = n
			var m record
			if json.Unmarshal(old, &m) != nil || !m.Until.After(now) && !m.Kept.After(now) || m.ID == a.id {
				found = append(found, free{n, slices.Clone(old)})
			}
			return true
		})
		if err != nil {
			return err
		}
		for n := last + 1; n < min(last+9, most); n++ {
			found = append(found, free{n, nil})
		}
		// Any of the first ones, so that many that start at once do not all want one.
		found = found[:min(8, len(found))]
		mathrand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		for _, f := range found {
			ok, err := a.store.CAS(ctx, key(f.slot), f.old, value)
			if err != nil {
				return err
			}
			if ok {
				a.slot = f.slot
				return nil
			}
		}
	}
	return errors.New("members: others were faster, again and again")
}
