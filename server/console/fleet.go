package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/members"
)

// A fleet is what the store says of sequencers and servers, read when somebody
// looks and shared by all who do. It is safe for use by many goroutines at
// once.
type fleet struct {
	k *Console

	mu      sync.Mutex // guards what follows
	last    *snapshot
	version uint64        // grows when what was read must be read again
	loading chan struct{} // closed when the load under way is done; nil if none is
	one     map[string]sequencerInfo
	oneAt   map[string]time.Time
	first   map[holding]time.Time // when an owner was first seen with a number
	clocks  map[string]*clockOf   // by member
	gone    map[string]memberInfo // servers that are not listed any more, by member
}

// A snapshot is what the store said at a time. It does not change.
type snapshot struct {
	At         time.Time // when it was read; the zero time if never
	Version    uint64
	Sequencers []sequencerInfo // by their names
	Members    []memberInfo
	Err        error     // the store did not answer, and this is what it said before
	ErrAt      time.Time // since when
}

// A sequencerInfo is a sequencer with its node IDs.
type sequencerInfo struct {
	Name   string
	Info   grant.Info
	Fault  string           // its record cannot be read
	Nodes  []grant.NodeInfo // in the order of their numbers
	Looked bool             // Nodes was read
	Broken int              // records of node IDs that cannot be read
	At     time.Time
}

// A memberInfo is a server with what is known of its clock.
type memberInfo struct {
	members.Member
	Clock clockError
	Rates map[string]float64 // of its sequencers, between the last two times that it wrote
	Heard time.Time          // when it was seen to have written, by this server's clock
	State presence
}

// A presence is whether a server is there.
type presence int

const (
	there   presence = iota
	late             // it should have written again by now
	stopped          // it said that it ends
	lost             // it did not write again, nor say that it ends
)

// keepGone is how long servers are shown that are gone.
const keepGone = 10 * time.Minute

// A holding is an owner's hold of a node ID.
type holding struct {
	name, owner string
	node        uint64
}

const (
	keepFor      = time.Second     // how long what was read is good
	loadLimit    = 3 * time.Second // for what is asked of the store at once
	loadPatience = time.Second     // how long a page waits that can show what was before
	maxNodes     = 200             // sequencers whose node IDs are read for the list
	maxSeen      = 20_000          // owners that are remembered
	maxOne       = 200             // sequencers that are remembered one by one
)

func newFleet(k *Console) *fleet {
	return &fleet{k: k, last: new(snapshot), one: make(map[string]sequencerInfo), oneAt: make(map[string]time.Time), first: make(map[holding]time.Time), clocks: make(map[string]*clockOf), gone: make(map[string]memberInfo)}
}

// forget has what was read read again.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	clear(f.one)
	clear(f.oneAt)
}

// recent is what the store says, or has said where it does not answer soon.
func (f *fleet) recent(ctx context.Context) *snapshot {
	if f.k.admin == nil {
		return &snapshot{}
	}
	now := f.k.c.Now() // not under the lock: it may panic
	f.mu.Lock()
	last := f.last
	at := last.At
	if last.Err != nil {
		at = last.ErrAt
	}
	if age := now.Sub(at); last.Version == f.version && age >= 0 && age < keepFor {
		f.mu.Unlock()
		return last
	}
	loaded := f.loading
	if loaded == nil {
		loaded = make(chan struct{})
		version := f.version
		if f.k.background(func() {
			next := f.load(version, last)
			f.mu.Lock()
			f.last, f.loading = next, nil
			f.mu.Unlock()
			close(loaded)
		}) {
			f.loading = loaded
		} else {
			close(loaded) // the server stops
		}
	}
	f.mu.Unlock()
	wait := loadLimit
	if !last.At.IsZero() && last.Version == f.versionNow() {
		wait = loadPatience // there is something to show
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-loaded:
	case <-t.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == last && last.Err == nil {
		slow := *last
		slow.Err, slow.ErrAt = context.DeadlineExceeded, now
		return &slow
	}
	return f.last
}

// versionNow is what forget has made of the version.
func (f *fleet) versionNow() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// load reads the store, within a limit of its own: others wait for it too.
func (f *fleet) load(version uint64, before *snapshot) *snapshot {
	ctx, cancel := context.WithTimeout(f.k.ctx, min(loadLimit, f.k.c.Limit))
	defer cancel()
	begin := f.k.c.Now()
	s := &snapshot{At: begin, Version: version}
	err := f.k.admin.Sequencers(ctx, func(name string, info grant.Info, err error) bool {
		q := sequencerInfo{Name: name, Info: info, At: begin}
		if err != nil {
			q.Fault = detail(err)
		}
		s.Sequencers = append(s.Sequencers, q)
		return true
	})
	for i := range s.Sequencers {
		q := &s.Sequencers[i]
		if err != nil || i >= maxNodes || q.Fault != "" {
			break
		}
		err = f.readNodes(ctx, q)
	}
	if err == nil {
		var all []members.Member
		asked := f.k.c.Now()
		if all, err = f.k.admin.Members(ctx); err == nil {
			s.Members = f.withClocks(all, asked, f.k.c.Now())
		}
	}
	if err != nil {
		s.Sequencers, s.Members, s.At = before.Sequencers, before.Members, before.At
		s.Err, s.ErrAt = err, f.k.c.Now()
		f.k.c.Log.Debug("console: the store does not answer", "error", err)
	}
	return s
}

// readNodes reads the node IDs of a sequencer.
func (f *fleet) readNodes(ctx context.Context, q *sequencerInfo) error {
	q.Nodes, q.Looked, q.Broken = nil, true, 0
	err := f.k.admin.Nodes(ctx, q.Name, func(n grant.NodeInfo, err error) bool {
		if err != nil {
			q.Broken++
			return true
		}
		q.Nodes = append(q.Nodes, n)
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range q.Nodes {
		if n.Owner == "" || !n.Held || n.Wall.IsZero() {
			continue
		}
		h := holding{q.Name, n.Owner, n.Node}
		if _, ok := f.first[h]; ok {
			continue
		}
		if len(f.first) >= maxSeen {
			clear(f.first) // what is forgotten is only how long somebody has held it
		}
		f.first[h] = n.Wall
	}
	return err
}

// since is when the owner of a node ID was first seen with it.
func (f *fleet) since(name string, n grant.NodeInfo) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.first[holding{name, n.Owner, n.Node}]
	return t, ok
}

// errNoSequencer is of a name that the store does not have.
var errNoSequencer = errors.New("there is no such sequencer")

// lookup is one sequencer with its node IDs.
func (f *fleet) lookup(ctx context.Context, name string) (sequencerInfo, error) {
	if f.k.admin == nil {
		return sequencerInfo{}, errNoSequencer
	}
	now := f.k.c.Now()
	f.mu.Lock()
	version := f.version
	if age := now.Sub(f.oneAt[name]); age >= 0 && age < keepFor {
		defer f.mu.Unlock()
		return f.one[name], nil
	}
	f.mu.Unlock()
	q := sequencerInfo{Name: name, At: now}
	var err error
	if q.Info, err = f.k.admin.Lookup(ctx, name); err != nil {
		if errors.Is(err, grant.ErrNotFound) {
			err = errNoSequencer
		}
		return q, err
	}
	if err := f.readNodes(ctx, &q); err != nil {
		return q, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.one) >= maxOne {
		clear(f.one)
		clear(f.oneAt)
	}
	if version == f.version {
		f.one[name], f.oneAt[name] = q, now
	}
	return q, nil
}

// nodes is lookup for what may also be left out.
func (f *fleet) nodes(ctx context.Context, name string) (sequencerInfo, bool) {
	ctx, cancel := context.WithTimeout(ctx, min(loadLimit, f.k.c.Limit))
	defer cancel()
	q, err := f.lookup(ctx, name)
	return q, err == nil
}

// A clockError is by how much another server's clock differs from this one's:
// somewhere from Low to High. The zero clockError knows nothing.
type clockError struct {
	Known     bool
	Low, High time.Duration
}

// Middle is the best guess.
func (c clockError) Middle() time.Duration { return (c.Low + c.High) / 2 }

// Either is how far the guess may be off.
func (c clockError) Either() time.Duration { return (c.High - c.Low) / 2 }

// Off reports whether the clock is certainly wrong by so much that IDs come out
// of order.
func (c clockError) Off() bool { return c.Known && (c.Low > time.Second || c.High < -time.Second) }

// A clockOf is what was seen of a server's clock. It writes its time into the
// store, and this server sees between which two looks: so each new time bounds
// the difference.
type clockOf struct {
	seen   time.Time          // what it wrote last
	heard  time.Time          // when that was seen to be new
	looked time.Time          // when that was there already
	ids    map[string]uint64  // that it had made of each sequencer then
	rates  map[string]float64 // since it wrote before
	bounds []clockError
	last   memberInfo
}

const maxBounds = 8 // the last of them: a clock that is set right is soon seen to be

// withClocks adds what is known of the servers' clocks. The store was asked at
// begin, and had answered at end.
func (f *fleet) withClocks(all []members.Member, begin, end time.Time) (list []memberInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := make(map[string]bool)
	for _, m := range all {
		listed[m.ID] = true
		c := f.clocks[m.ID]
		if c == nil {
			c = &clockOf{}
			f.clocks[m.ID] = c
		}
		if !m.Seen.Equal(c.seen) {
			if !c.looked.IsZero() {
				c.bounds = append(c.bounds, clockError{true, m.Seen.Sub(end), m.Seen.Sub(c.looked)})
				if len(c.bounds) > maxBounds {
					c.bounds = slices.Delete(c.bounds, 0, 1)
				}
			}
			ids, rates := make(map[string]uint64), make(map[string]float64)
			passed := m.Seen.Sub(c.seen).Seconds()
			for _, h := range m.Holds {
				ids[h.Sequencer] = h.IDs
				if before, ok := c.ids[h.Sequencer]; ok && h.IDs > before && passed > 0 {
					rates[h.Sequencer] = float64(h.IDs-before) / passed
				}
			}
			c.seen, c.heard, c.ids, c.rates = m.Seen, end, ids, rates
		}
		c.looked = begin
		info := memberInfo{Member: m, Clock: c.error(), Rates: c.rates, Heard: c.heard}
		// It writes three times in the time after which it counts as gone.
		if long := m.Until.Sub(m.Seen); end.Sub(c.heard) > long/2 {
			info.State = late
		}
		c.last = info
		list = append(list, info)
	}
	for id, c := range f.clocks {
		if listed[id] {
			delete(f.gone, id)
			continue
		}
		// A server is not listed any more by this clock's Until. Before that it must
		// have said so itself. Where nobody has looked for long, either may be.
		delete(f.clocks, id)
		info := c.last
		info.Rates, info.Rate, info.Holds = nil, 0, nil
		switch {
		case end.Before(info.Until):
			info.State = stopped
		case info.Until.Sub(c.looked) < info.Until.Sub(info.Seen)/2:
			info.State = lost
		default:
			continue
		}
		f.gone[id] = info
	}
	for id, info := range f.gone {
		if end.Sub(info.Heard) > keepGone {
			delete(f.gone, id)
			continue
		}
		list = append(list, info)
	}
	return list
}

// error is what all bounds agree on; where they do not, the clock was set, and
// the last one counts.
func (c *clockOf) error() clockError {
	var e clockError
	for i := len(c.bounds) - 1; i >= 0; i-- {
		b := c.bounds[i]
		if !e.Known {
			e = b
			continue
		}
		if b.Low > e.High || b.High < e.Low {
			break
		}
		e.Low, e.High = max(e.Low, b.Low), min(e.High, b.High)
	}
	return e
}
