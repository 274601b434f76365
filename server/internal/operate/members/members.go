// Package members lets the servers of one store know of each other. Each of
// them regularly writes a record about itself into the store, which anyone can
// read.
//
// The records are for people. A server may run without being listed, or be
// listed up to half a minute after it has gone, when another program may
// already have its address.
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
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firnid/firn/grant"
)

// A Server is a server as it has announced itself.
type Server struct {
	ID      string    `json:"id"`                // random, new for each run
	Host    string    `json:"host"`              // name of its machine
	Address string    `json:"address,omitempty"` // HOST:PORT for other servers; empty if none
	TLS     bool      `json:"tls,omitempty"`     // whether the address uses TLS
	Version string    `json:"version"`           // of firn
	Started time.Time `json:"started"`           // by its clock, like the times below
	Seen    time.Time `json:"seen"`              // when it wrote the record
	Until   time.Time `json:"until"`             // it is gone if it has not written again by then

	// NodeIDs is how many node IDs it holds. Holds has the first MaxHeld of them
	// by sequencer, or fewer with long names; Partial says that it has not all.
	NodeIDs int    `json:"node_ids"`
	Holds   []Held `json:"holds"`
	Partial bool   `json:"partial,omitempty"`

	// Lacks has the sequencers in use of which it gives no IDs; it is sorted and
	// shortened like Holds.
	Lacks []Lack `json:"lacks,omitempty"`

	IDs       uint64  `json:"ids"`       // IDs made since it started
	Rate      float64 `json:"rate"`      // IDs per second since its previous record
	Forwarded uint64  `json:"forwarded"` // calls that it forwarded since it started
}

// Name identifies a server among those of its host: by its address, or by the
// beginning of its ID if it has none.
func (s *Server) Name() string {
	return cmp.Or(s.Address, "id:"+s.ID[:min(8, len(s.ID))])
}

// HeldAt returns how many node IDs a server holds at a time, by its record.
// atLeast says that there may be more: the record is of an older server, or was
// shortened by For.
func (s *Server) HeldAt(now time.Time) (n int, atLeast bool) {
	n = s.NodeIDs
	for _, h := range s.Holds {
		if !h.Until.After(now) {
			n--
		}
	}
	return n, s.Partial && s.NodeIDs == len(s.Holds)
}

// A Held is a node ID of a server.
type Held struct {
	Sequencer string    `json:"sequencer"`
	Node      uint64    `json:"node"`
	Until     time.Time `json:"until"`
	IDs       uint64    `json:"ids"` // IDs of the sequencer made since the server started
}

// A Lack is a sequencer of which a server gives no IDs.
type Lack struct {
	Sequencer string `json:"sequencer"`
	Problem   string `json:"problem"` // its kind, such as store-rolled-back
}

// IsAddress reports whether a program could connect to an address: it is
// HOST:PORT.
func IsAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	foreign := func(r rune) bool { return r <= ' ' || strings.ContainsRune("/@?#\\\"'", r) }
	if err != nil || host == "" || strings.ContainsFunc(host, foreign) {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// For returns the Server for a user who may see only some sequencers: with the
// node IDs and IDs of these, as far as it lists them, and without its rate and
// forwarded calls, which are totals.
func (s Server) For(sees func(sequencer string) bool) Server {
	holds := make([]Held, 0, len(s.Holds))
	s.IDs, s.Rate, s.Forwarded = 0, 0, 0
	for _, h := range s.Holds {
		if sees(h.Sequencer) {
			holds = append(holds, h)
			s.IDs += h.IDs
		}
	}
	s.Holds, s.NodeIDs = holds, len(holds)
	s.Lacks = slices.DeleteFunc(slices.Clone(s.Lacks), func(l Lack) bool { return !sees(l.Sequencer) })
	return s
}

// MaxHeld is how many node IDs a Server lists at most: records are short.
const MaxHeld = 20

// prefix begins the keys; a number from 0 up follows. No store removes records,
// so a new member reuses the record of one that has gone.
const prefix = "members/v1/"

func key(n int) string { return fmt.Sprintf("%s%04d", prefix, n) }

// maxMembers is the maximum number of servers listed.
const maxMembers = 10_000

// List returns the present members of a store, sorted by host: those whose
// record has not expired by the clock now. A member's own clock determines when
// its record expires: if that was ahead, a crashed member stays listed for just
// as long. List costs one List of the store.
func List(ctx context.Context, s grant.Store, now time.Time) ([]Server, error) {
	var all []Server
	err := s.List(ctx, prefix, func(_ string, value []byte) bool {
		var m Server
		if json.Unmarshal(value, &m) == nil && m.Until.After(now) {
			if m.NodeIDs < len(m.Holds) { // an older server does not say how many
				m.NodeIDs, m.Partial = len(m.Holds), len(m.Holds) >= MaxHeld
			}
			all = append(all, m)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Server) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Address, b.Address), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Holders returns the names of the servers by the node IDs that they hold: a
// Held with a Sequencer and a Node. Only those are found that the servers list.
func Holders(all []Server) map[Held]string {
	by := make(map[Held]string)
	for _, m := range all {
		for _, h := range m.Holds {
			by[Held{Sequencer: h.Sequencer, Node: h.Node}] = m.Name()
		}
	}
	return by
}

// Options configure an Announcer. The zero Options mean the defaults.
type Options struct {
	// Every is how often a member writes its record; zero means what the store
	// says, because its requests may cost money, or 10 seconds. A member counts
	// as gone after three times that.
	Every time.Duration

	// Now is the clock; nil is the system's.
	Now func() time.Time

	// Logger receives a message when the store does not accept the record, and
	// when it does again; nil discards them.
	Logger *slog.Logger
}

// An Announcer writes the record of a server. It must be made by New.
type Announcer struct {
	store   grant.Store
	options Options
	id      string

	// Used by Run only.
	slot  int // -1 if none
	value []byte
	ids   uint64
	wrote time.Time
}

// New makes an Announcer, which writes nothing before Run.
func New(s grant.Store, o Options) *Announcer {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Announcer{store: s, options: o, id: rand.Text(), slot: -1}
}

// ID returns the ID under which the member is listed.
func (a *Announcer) ID() string { return a.id }

// every returns how often the record is written. A store that is not open yet
// does not say.
func (a *Announcer) every() time.Duration {
	every := max(a.options.Every, 0)
	if p, ok := grant.As[grant.Paced](a.store); ok {
		every = cmp.Or(every, p.Pace().PresenceEvery)
	}
	return cmp.Or(every, 10*time.Second)
}

// Run writes the record until ctx is done, and then, within a second, that the
// member is gone. It calls describe before each write, and fills in ID, Seen,
// Until, NodeIDs, Partial and Rate; Holds and Lacks become its own. It must be
// called once.
func (a *Announcer) Run(ctx context.Context, describe func() Server) {
	every := a.every()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var failing time.Time // since when writing fails; zero if it does not
	for {
		if now := a.every(); now != every {
			every = now
			tick.Reset(every)
		}
		call, cancel := context.WithTimeout(ctx, every)
		err := a.write(call, describe(), 3*every)
		cancel()
		switch {
		case err == nil && !failing.IsZero():
			a.options.Logger.Info("server listed in the store again", "after",
				time.Since(failing).Round(time.Millisecond).String())
			failing = time.Time{}
		case err != nil && ctx.Err() == nil && failing.IsZero():
			failing = time.Now()
			a.options.Logger.Warn("server not listed: writing its record to the store failed", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if a.slot >= 0 {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				_ = a.write(last, describe(), 0) // otherwise the record expires a little later
				cancel()
			}
			return
		}
	}
}

// write writes the record, which is valid for a time.
func (a *Announcer) write(ctx context.Context, m Server, valid time.Duration) error {
	now := a.options.Now().Truncate(time.Millisecond)
	m.ID, m.Seen, m.Until = a.id, now, now.Add(valid)
	m.NodeIDs = len(m.Holds)
	slices.SortFunc(m.Holds, func(a, b Held) int { return cmp.Compare(a.Sequencer, b.Sequencer) })
	slices.SortFunc(m.Lacks, func(a, b Lack) int { return cmp.Compare(a.Sequencer, b.Sequencer) })
	m.Holds, m.Lacks = m.Holds[:min(len(m.Holds), MaxHeld)], m.Lacks[:min(len(m.Lacks), MaxHeld)]
	m.Partial = len(m.Holds) < m.NodeIDs
	if passed := now.Sub(a.wrote); !a.wrote.IsZero() && passed > 0 && m.IDs >= a.ids {
		m.Rate = float64(m.IDs-a.ids) / passed.Seconds()
	}
	value, err := json.Marshal(m)
	for err == nil && grant.CheckValue(value) != nil && len(m.Holds)+len(m.Lacks) > 0 {
		m.Holds, m.Lacks = m.Holds[:len(m.Holds)*3/4], m.Lacks[:len(m.Lacks)*3/4] // the names are too long
		m.Partial = len(m.Holds) < m.NodeIDs
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
			a.slot = -1 // another member took this one for gone
		}
	}
	if a.slot < 0 && valid > 0 {
		if err := a.claim(ctx, now, value); err != nil {
			return err
		}
	}
	a.value, a.ids, a.wrote = value, m.IDs, now
	return nil
}

// claim finds a free record and writes into it. If the store reports its time,
// the record must be free by that too: otherwise a clock that is ahead would
// take the records of live servers.
func (a *Announcer) claim(ctx context.Context, now time.Time, value []byte) error {
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
			var m Server
			if json.Unmarshal(old, &m) != nil || !m.Until.After(now) || m.ID == a.id {
				found = append(found, free{n, slices.Clone(old)})
			}
			return true
		})
		if err != nil {
			return err
		}
		for n := last + 1; n < min(last+9, maxMembers); n++ {
			found = append(found, free{n, nil})
		}
		// Choose among the first ones, so that servers that start together do
		// not all want the same.
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
	return errors.New("members: other servers took every free record first")
}
