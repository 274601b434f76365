package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/operate/members"
)

// snapshots are what the store says about sequencers and servers, read on
// demand and shared by all visitors. They are safe for concurrent use.
type snapshots struct {
	console *Console
	version atomic.Uint64 // increases when the store must be read again

	turn  chan struct{} // of size 1: held by the visitor that reads the store, guards the fields below
	last  *snapshot
	heard map[string]memberInfo // the servers in last, by ID
}

// A snapshot is the state of the store at a time. It is immutable.
type snapshot struct {
	At         time.Time // when it was read; the zero time if never
	Version    uint64
	Sequencers []sequencerInfo // by name
	Members    []memberInfo
	Err        error     // the store did not answer, and this is its previous state
	Tried      time.Time // when the store was last asked
}

// A sequencerInfo is a sequencer with its node IDs.
type sequencerInfo struct {
	Name      string
	Info      grant.Info
	Damage    string           // why its record cannot be read
	Nodes     []grant.NodeInfo // in ascending order, if NodesRead
	Damaged   []grant.NodeInfo // node IDs whose records cannot be read
	NodesRead bool
}

// A memberInfo is a server and what is known about it.
type memberInfo struct {
	members.Server
	Name  string    // tells it apart from the others
	Heard time.Time // when its last record was seen, by this server's clock
	Late  bool      // its next record is overdue
}

const (
	keepFor    = time.Second     // how long a snapshot is valid
	loadLimit  = 3 * time.Second // for reading the store
	maxCounted = 200             // sequencers whose node IDs are read, the first by name
)

func newSnapshots(k *Console) *snapshots {
	return &snapshots{console: k, turn: make(chan struct{}, 1), last: new(snapshot)}
}

// forget makes the next visitor read the store again.
func (ss *snapshots) forget() { ss.version.Add(1) }

// recent returns the current snapshot, or the previous one if the store does
// not answer.
func (ss *snapshots) recent(ctx context.Context) *snapshot {
	select {
	case ss.turn <- struct{}{}:
		defer func() { <-ss.turn }()
	case <-ctx.Done():
		return &snapshot{Err: ctx.Err()}
	}
	now, version := ss.console.config.Now(), ss.version.Load()
	if age := now.Sub(ss.last.Tried); ss.last.Version != version || age < 0 || age >= keepFor {
		ss.last = ss.load(now, version)
	}
	return ss.last
}

// load reads the store, within its own limit: other visitors wait for it too.
func (ss *snapshots) load(now time.Time, version uint64) *snapshot {
	ctx, cancel := context.WithTimeout(ss.console.ctx, min(loadLimit, ss.console.front.RequestTimeout))
	defer cancel()
	s := &snapshot{At: now, Version: version, Tried: now}
	if ss.console.admin == nil {
		return s
	}
	err := ss.console.admin.Sequencers(ctx, func(info grant.Info, err error) bool {
		q := sequencerInfo{Name: info.Name, Info: info}
		if err != nil {
			q.Damage = detail(err)
		}
		s.Sequencers = append(s.Sequencers, q)
		return true
	})
	read := 0
	for i := range s.Sequencers {
		q := &s.Sequencers[i]
		if err != nil || read >= maxCounted {
			break
		}
		if q.Damage == "" {
			read++
			err = ss.readNodes(ctx, q)
		}
	}
	if err == nil {
		var all []members.Server
		if all, err = ss.console.admin.Members(ctx); err == nil {
			s.Members = ss.heardNow(all, ss.console.config.Now())
			nameMembers(s.Members)
		}
	}
	s.Tried = ss.console.config.Now()
	if err != nil {
		s.Sequencers, s.Members, s.At, s.Err = ss.last.Sequencers, ss.last.Members, ss.last.At, err
		ss.console.front.Logger.Debug("console: store does not answer", "error", err)
	}
	return s
}

// readNodes reads the node IDs of a sequencer.
func (ss *snapshots) readNodes(ctx context.Context, q *sequencerInfo) error {
	q.Nodes, q.NodesRead, q.Damaged = nil, true, nil
	return ss.console.admin.Nodes(ctx, q.Name, func(n grant.NodeInfo, err error) bool {
		if err != nil {
			q.Damaged = append(q.Damaged, n)
		} else {
			q.Nodes = append(q.Nodes, n)
		}
		return true
	})
}

// errNoSequencer is the error for a name that the store does not have.
var errNoSequencer = errors.New("sequencer not found")

// lookup returns a sequencer with its node IDs, and the snapshot it is from.
func (ss *snapshots) lookup(ctx context.Context, name string) (q sequencerInfo, s *snapshot, err error) {
	if ss.console.admin == nil {
		return q, &snapshot{}, errNoSequencer
	}
	ctx, cancel := context.WithTimeout(ctx, min(loadLimit, ss.console.front.RequestTimeout))
	defer cancel()
	s = ss.recent(ctx)
	i := slices.IndexFunc(s.Sequencers, func(q sequencerInfo) bool { return q.Name == name })
	if i < 0 {
		return q, s, cmp.Or(s.Err, errNoSequencer)
	}
	q = s.Sequencers[i]
	if !q.NodesRead && q.Damage == "" {
		err = ss.readNodes(ctx, &q)
	}
	return q, s, err
}

// holder returns the name of the server that holds or held a node ID.
func (s *snapshot) holder(sequencer string, n grant.NodeInfo) string {
	for _, m := range s.Members {
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
	hosts := make(map[string]int)
	for _, m := range list {
		hosts[m.Host]++
	}
	for i, m := range list {
		list[i].Name = m.Host
		if hosts[m.Host] > 1 || m.Host == "" {
			list[i].Name += ", " + cmp.Or(m.Address, m.ID[:min(6, len(m.ID))])
		}
	}
}

// heardNow returns the listed servers, and when each was last heard of.
func (ss *snapshots) heardNow(all []members.Server, now time.Time) (list []memberInfo) {
	heard := make(map[string]memberInfo, len(all))
	for _, m := range all {
		is := memberInfo{Server: m, Heard: now}
		if last, ok := ss.heard[m.ID]; ok && last.Seen.Equal(m.Seen) {
			is.Heard = last.Heard
		}
		// A server writes its record three times before it would count as gone.
		is.Late = now.Sub(is.Heard) > m.Until.Sub(m.Seen)/2
		heard[m.ID] = is
		list = append(list, is)
	}
	ss.heard = heard
	return list
}
