package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/members"
)

// A fleet is what the store says about sequencers and servers, read on demand
// and shared by all visitors. It is safe for concurrent use.
type fleet struct {
	k *Console

	mu      sync.Mutex // guards the fields below
	last    *snapshot
	version uint64        // increases when the store must be read again
	loading chan struct{} // closed when the current load is done; nil without a load
	one     map[string]sequencerInfo
	first   map[holding]time.Time // when an owner was first seen with a node ID
	servers map[string]*watched   // by member
	gone    map[string]memberInfo // servers that are no longer listed, by member
}

// A snapshot is the state of the store at a time. It is immutable.
type snapshot struct {
	At         time.Time // when it was read; the zero time if never
	Version    uint64
	Sequencers []sequencerInfo // by name
	Members    []memberInfo
	Err        error     // the store did not answer, and this is its previous state
	ErrAt      time.Time // since when
}

// A sequencerInfo is a sequencer with its node IDs.
type sequencerInfo struct {
	Name   string
	Info   grant.Info
	Fault  string           // why its record cannot be read
	Nodes  []grant.NodeInfo // in ascending order
	Looked bool             // Nodes was read
	Broken int              // records of node IDs that cannot be read
	At     time.Time
}

// A memberInfo is a server and what is known about it.
type memberInfo struct {
	members.Member
	Rates map[string]float64 // of its sequencers, between its last two records
	Heard time.Time          // when its last record was seen, by this server's clock
	State presence
}

// A presence is whether a server is present.
type presence int

const (
	there   presence = iota
	late             // its next record is overdue
	stopped          // it announced that it was stopping
	lost             // it wrote no more records, without announcing that it was stopping
)

// keepGone is how long servers that are gone are shown.
const keepGone = 10 * time.Minute

// A holding is an owner's hold of a node ID.
type holding struct {
	name, owner string
	node        uint64
}

const (
	keepFor      = time.Second     // how long a snapshot is valid
	loadLimit    = 3 * time.Second // for reading the store
	loadPatience = time.Second     // how long a page waits if it can show the previous snapshot
	maxNodes     = 200             // sequencers in the list whose node IDs are read
	maxSeen      = 20_000          // maximum number of remembered owners
	maxOne       = 200             // maximum number of sequencers that are cached one by one
)

func newFleet(k *Console) *fleet {
	return &fleet{k: k, last: new(snapshot), one: make(map[string]sequencerInfo), first: make(map[holding]time.Time), servers: make(map[string]*watched), gone: make(map[string]memberInfo)}
}

// forget makes the next visitor read the store again.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	clear(f.one)
}

// recent returns the current snapshot, or the previous one if the store does
// not answer soon.
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
			close(loaded) // the server is shutting down
		}
	}
	f.mu.Unlock()
	wait := loadLimit
	if !last.At.IsZero() && last.Version == f.versionNow() {
		wait = loadPatience // the previous snapshot can be shown
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

// versionNow returns the version that forget increments.
func (f *fleet) versionNow() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// load reads the store, within its own limit: other visitors wait for it too.
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
			s.Members = f.watch(all, asked, f.k.c.Now())
		}
	}
	if err != nil {
		s.Sequencers, s.Members, s.At = before.Sequencers, before.Members, before.At
		s.Err, s.ErrAt = err, f.k.c.Now()
		f.k.c.Log.Debug("console: store does not answer", "error", err)
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
			clear(f.first) // this only forgets how long owners have held them
		}
		f.first[h] = n.Wall
	}
	return err
}

// since returns when the owner of a node ID was first seen with it.
func (f *fleet) since(name string, n grant.NodeInfo) (time.Time, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.first[holding{name, n.Owner, n.Node}]
	return t, ok
}

// errNoSequencer is the error for a name that the store does not have.
var errNoSequencer = errors.New("sequencer not found")

// lookup returns one sequencer with its node IDs.
func (f *fleet) lookup(ctx context.Context, name string) (sequencerInfo, error) {
	if f.k.admin == nil {
		return sequencerInfo{}, errNoSequencer
	}
	now := f.k.c.Now()
	f.mu.Lock()
	version := f.version
	if q, ok := f.one[name]; ok && now.Sub(q.At).Abs() < keepFor {
		defer f.mu.Unlock()
		return q, nil
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
	}
	if version == f.version {
		f.one[name] = q
	}
	return q, nil
}

// nodes is lookup for data that may be left out.
func (f *fleet) nodes(ctx context.Context, name string) (sequencerInfo, bool) {
	ctx, cancel := context.WithTimeout(ctx, min(loadLimit, f.k.c.Limit))
	defer cancel()
	q, err := f.lookup(ctx, name)
	return q, err == nil
}

// A watched is what was seen of a server's records.
type watched struct {
	seen   time.Time         // the time of its last record, by its own clock
	looked time.Time         // when that was last there
	ids    map[string]uint64 // IDs that it had made of each sequencer then
	last   memberInfo
}

// watch adds what earlier reads of the store say about its servers. The store
// was read between begin and end.
func (f *fleet) watch(all []members.Member, begin, end time.Time) (list []memberInfo) {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := make(map[string]bool)
	for _, m := range all {
		listed[m.ID] = true
		c := f.servers[m.ID]
		if c == nil {
			c = &watched{}
			f.servers[m.ID] = c
		}
		if !m.Seen.Equal(c.seen) {
			ids, rates := make(map[string]uint64), make(map[string]float64)
			passed := m.Seen.Sub(c.seen).Seconds()
			for _, h := range m.Holds {
				ids[h.Sequencer] = h.IDs
				if before, ok := c.ids[h.Sequencer]; ok && h.IDs > before && passed > 0 {
					rates[h.Sequencer] = float64(h.IDs-before) / passed
				}
			}
			c.seen, c.ids, c.last.Heard, c.last.Rates = m.Seen, ids, end, rates
		}
		c.looked = begin
		c.last.Member, c.last.State = m, there
		// A server writes its record three times before it would count as gone.
		if long := m.Until.Sub(m.Seen); end.Sub(c.last.Heard) > long/2 {
			c.last.State = late
		}
		list = append(list, c.last)
	}
	for id, c := range f.servers {
		if listed[id] {
			delete(f.gone, id)
			continue
		}
		// By this clock, a server is no longer listed after its Until. If it was
		// missing earlier, it announced that it was stopping. Without a recent look,
		// either is possible.
		delete(f.servers, id)
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
