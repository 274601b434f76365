package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/fleet/members"
)

// snapshots are what the store says about sequencers and servers, read on
// demand and shared by all visitors. They are safe for concurrent use.
type snapshots struct {
	k *Console

	mu      sync.Mutex // guards the fields below
	last    *snapshot
	version uint64                // increases when the store must be read again
	loading chan struct{}         // closed when the current load is done; nil without a load
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
	Broken []grant.NodeInfo // node IDs whose records cannot be read
}

// A memberInfo is a server and what is known about it.
type memberInfo struct {
	members.Member
	Name  string             // tells it apart from the others
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

const (
	keepFor      = time.Second     // how long a snapshot is valid
	loadLimit    = 3 * time.Second // for reading the store
	loadPatience = time.Second     // how long a page waits if it can show the previous snapshot
	maxNodes     = 200             // sequencers in the list whose node IDs are read
)

func newSnapshots(k *Console) *snapshots {
	return &snapshots{k: k, last: new(snapshot), servers: make(map[string]*watched), gone: make(map[string]memberInfo)}
}

// forget makes the next visitor read the store again.
func (ss *snapshots) forget() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.version++
}

// recent returns the current snapshot, or the previous one if the store does
// not answer soon.
func (ss *snapshots) recent(ctx context.Context) *snapshot {
	if ss.k.admin == nil {
		return &snapshot{}
	}
	now := ss.k.c.Now() // not under the lock: it may panic
	ss.mu.Lock()
	last := ss.last
	at := last.At
	if last.Err != nil {
		at = last.ErrAt
	}
	if age := now.Sub(at); last.Version == ss.version && age >= 0 && age < keepFor {
		ss.mu.Unlock()
		return last
	}
	loaded := ss.loading
	if loaded == nil {
		loaded = make(chan struct{})
		version := ss.version
		if ss.k.background(func() {
			next := ss.load(version, last)
			ss.mu.Lock()
			ss.last, ss.loading = next, nil
			ss.mu.Unlock()
			close(loaded)
		}) {
			ss.loading = loaded
		} else {
			close(loaded) // the server is shutting down
		}
	}
	wait := loadLimit
	if !last.At.IsZero() && last.Version == ss.version {
		wait = loadPatience // the previous snapshot can be shown
	}
	ss.mu.Unlock()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-loaded:
	case <-t.C:
	case <-ctx.Done():
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.last == last && last.Err == nil {
		slow := *last
		slow.Err, slow.ErrAt = context.DeadlineExceeded, now
		return &slow
	}
	return ss.last
}

// load reads the store, within its own limit: other visitors wait for it too.
func (ss *snapshots) load(version uint64, before *snapshot) *snapshot {
	ctx, cancel := context.WithTimeout(ss.k.ctx, min(loadLimit, ss.k.c.Limit))
	defer cancel()
	begin := ss.k.c.Now()
	s := &snapshot{At: begin, Version: version}
	err := ss.k.admin.Sequencers(ctx, func(name string, info grant.Info, err error) bool {
		q := sequencerInfo{Name: name, Info: info}
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
		err = ss.readNodes(ctx, q)
	}
	if err == nil {
		var all []members.Member
		asked := ss.k.c.Now()
		if all, err = ss.k.admin.Members(ctx); err == nil {
			s.Members = ss.watch(all, asked, ss.k.c.Now())
			nameMembers(s.Members)
		}
	}
	if err != nil {
		s.Sequencers, s.Members, s.At = before.Sequencers, before.Members, before.At
		s.Err, s.ErrAt = err, ss.k.c.Now()
		ss.k.c.Log.Debug("console: store does not answer", "error", err)
	}
	return s
}

// readNodes reads the node IDs of a sequencer.
func (ss *snapshots) readNodes(ctx context.Context, q *sequencerInfo) error {
	q.Nodes, q.Looked, q.Broken = nil, true, nil
	err := ss.k.admin.Nodes(ctx, q.Name, func(n grant.NodeInfo, err error) bool {
		if err != nil {
			q.Broken = append(q.Broken, n)
			return true
		}
		q.Nodes = append(q.Nodes, n)
		return true
	})
	return err
}

// errNoSequencer is the error for a name that the store does not have.
var errNoSequencer = errors.New("sequencer not found")

// lookup returns a sequencer with its node IDs, and the snapshot it is from.
func (ss *snapshots) lookup(ctx context.Context, name string) (q sequencerInfo, s *snapshot, err error) {
	if ss.k.admin == nil {
		return q, &snapshot{}, errNoSequencer
	}
	ctx, cancel := context.WithTimeout(ctx, min(loadLimit, ss.k.c.Limit))
	defer cancel()
	s = ss.recent(ctx)
	i := slices.IndexFunc(s.Sequencers, func(q sequencerInfo) bool { return q.Name == name })
	if i < 0 {
		return q, s, cmp.Or(s.Err, errNoSequencer)
	}
	q = s.Sequencers[i]
	if !q.Looked && q.Fault == "" {
		err = ss.readNodes(ctx, &q)
	}
	return q, s, err
}

// present returns the members that have not gone.
func (s *snapshot) present(yield func(memberInfo) bool) {
	for _, m := range s.Members {
		if m.State != stopped && m.State != lost && !yield(m) {
			return
		}
	}
}

// holder returns the name of the server that holds or held a node ID.
func (s *snapshot) holder(sequencer string, n grant.NodeInfo) string {
	for m := range s.present {
		for _, h := range m.Holds {
			if n.Held && h.Sequencer == sequencer && h.Node == n.Node && m.Host == n.Host {
				return m.Name
			}
		}
	}
	return cmp.Or(n.Host, "a server without a name")
}

// nameMembers names servers after their host, and tells those of one host apart
// by address, or else by ID.
func nameMembers(list []memberInfo) {
	names := make(map[string]int)
	at := func(m memberInfo) string { return m.Host + ", " + m.Address }
	for _, m := range list {
		names[m.Host]++
		names[at(m)]++
	}
	for i, m := range list {
		switch {
		case names[m.Host] == 1 && m.Host != "":
			list[i].Name = m.Host
		case names[at(m)] == 1 && m.Address != "":
			list[i].Name = at(m)
		default:
			list[i].Name = m.Host + ", " + m.ID[:min(6, len(m.ID))]
		}
	}
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
func (ss *snapshots) watch(all []members.Member, begin, end time.Time) (list []memberInfo) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	listed := make(map[string]bool)
	for _, m := range all {
		listed[m.ID] = true
		c := ss.servers[m.ID]
		if c == nil {
			c = &watched{}
			ss.servers[m.ID] = c
		}
		if !m.Seen.Equal(c.seen) {
			ids, rates := make(map[string]uint64), make(map[string]float64)
			passed := m.Seen.Sub(c.seen).Seconds()
			for _, h := range m.Holds {
				ids[h.Sequencer] = h.IDs
				if before, ok := c.ids[h.Sequencer]; ok && passed > 0 {
					rates[h.Sequencer] = float64(max(h.IDs, before)-before) / passed
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
	for id, c := range ss.servers {
		if listed[id] {
			delete(ss.gone, id)
			continue
		}
		// By this clock, a server is no longer listed after its Until. If it was
		// missing earlier, it announced that it was stopping. Without a recent look,
		// either is possible.
		delete(ss.servers, id)
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
		ss.gone[id] = info
	}
	for id, info := range ss.gone {
		if end.Sub(info.Heard) > keepGone {
			delete(ss.gone, id)
			continue
		}
		list = append(list, info)
	}
	return list
}
