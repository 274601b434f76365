package grant

import (
	"context"
	"testing"
	"time"
)

// A stage is a world in which only the script of an incident happens. The
// machines, the generators, the store and the oracles are the same as in the
// simulator's runs.
type stage struct{ *world }

// incidents are the causes of duplicates in other systems, event by event.
var incidents = []struct {
	name string
	play func(s stage)
}{
	{"tikv pd 9157, stale leader moves the window", staleLeader},
	{"tikv pd 8836, memory of an earlier term", earlierTerm},
	{"vitess 3116, two primaries", twoPrimaries},
	{"leaf, two start on an empty store", firstStart},
	{"leaf, the refusal is swallowed", swallowed},
	{"lable, clock 2 ms back", clockBack},
	{"lable, close deletes what is another's", closeForeign},
	{"hazelcast 11967, split brain", splitBrain},
	{"hazelcast 17975, all restart with the clock back", allRestart},
	{"cockroach 90459, session over and not noticed", sessionOver},
	{"cosid, the lease is lost and the generator is not told", leaseLost},
	{"twitter snowflake 6, sequence reset by a refused call", sequenceReset},
	{"twitter snowflake, node ID passed on to a slower clock", slowerClock},
	{"icicle, failover to a replica that is behind", staleReplica},
	{"etcd restore, a replaced owner finds its record", replacedOwner},
	{"etcd 16028, revisions given out twice", revisionsAgain},
}

// TestHistoric: what went wrong elsewhere does not go wrong here. TestMistakes
// shows that every script would detect it.
func TestHistoric(t *testing.T) {
	for _, incident := range incidents {
		t.Run(incident.name, func(t *testing.T) {
			s := stage{newWorld(1, focus{})}
			s.byHand, s.format = true, formats[0]
			s.config = Config{Layout: s.layout, MaxAhead: s.ahead, Window: 30 * time.Second}
			s.create()
			incident.play(s)
			if s.Violation != "" {
				t.Error(s.Violation)
			}
		})
	}
}

// process starts a process that may take the node IDs from lo to hi.
func (s stage) process(lo, hi uint64) *member { return s.slow(lo, hi, 0) }

// slow starts a process whose clock is some ms behind.
func (s stage) slow(lo, hi uint64, behind int64) *member {
	s.Now += simMS // no two start at the same moment
	p := newMember(len(s.members))
	p.only = &[2]uint64{lo, hi}
	p.offset = -behind * simMS
	s.members = append(s.members, p)
	s.start(p)
	return p
}

// answer handles the request of a process, and answers it.
func (s stage) answer(p *member) {
	a := *p.waiting
	p.waiting = nil
	e, _ := s.store.do(a, p)
	p.answer(e)
}

// lose answers a request with a timeout; the request has no effect.
func (s stage) lose(p *member) {
	p.waiting = nil
	p.answer(event{Err: context.DeadlineExceeded})
}

// settle answers all requests of some processes.
func (s stage) settle(all ...*member) {
	for _, p := range all {
		for n := 0; p.waiting != nil; n++ {
			if n == 100 {
				s.Fail("promise: member %d does not stop asking", p.id)
				return
			}
			s.answer(p)
		}
	}
}

// sleep lets time pass, with timers, while some processes can reach the store.
func (s stage) sleep(d int64, connected ...*member) {
	end := s.Now + d*simMS
	s.settle(connected...)
	for s.Next(end) {
		s.settle(connected...)
	}
	s.Now = end
}

// make makes up to n IDs, and returns their number. If the window does not
// allow an ID, the process asks for more.
func (s stage) make(p *member, n int) (made int) {
	for made < n && s.Violation == "" {
		if p.g == nil {
			s.step(p, event{Kind: eventDemand})
			return made
		}
		id, err := p.g.TryNext()
		if err != nil {
			s.step(p, event{Kind: eventDemand})
			return made
		}
		s.take(p, id)
		made++
	}
	return made
}

// busy makes IDs for a while, in steps of 100 ms, while all processes can reach
// the store.
func (s stage) busy(d int64, all ...*member) (made []int) {
	made = make([]int, len(all))
	for end := s.Now + d*simMS; s.Now < end; s.sleep(100, all...) {
		for i, p := range all {
			made[i] += s.make(p, 5)
			s.settle(p)
		}
	}
	return made
}

// renewing makes IDs until a process asks for a longer window, and leaves that
// request unanswered.
func (s stage) renewing(p *member) {
	for range 1000 {
		if s.make(p, 1); p.waiting != nil {
			break
		}
		s.sleep(100)
	}
	s.setup(p.waiting != nil && p.waiting.Kind == actionCAS, "a renewal is under way")
}

// setup checks a precondition of a script.
func (s stage) setup(ok bool, what string) {
	if !ok {
		s.Fail("setup: it does not come to it that %s", what)
	}
}

// passOn waits until a process has the node ID of another one, and IDs of it.
func (s stage) passOn(to *member) {
	for range 100 {
		if s.sleep(1000, to); s.holds(to) {
			break
		}
	}
	s.setup(s.make(to, 50) == 50, "the node ID passes on")
}

// promise checks a promise of the protocol.
func (s stage) promise(ok bool, what string) {
	if !ok {
		s.Fail("promise: it does not hold that %s", what)
	}
}

func (s stage) leave(p *member) {
	p.wanted = false
	s.step(p, event{Kind: eventLeave})
	for range 3 {
		s.sleep(0, p) // requests in progress, and the seal
	}
}

func (s stage) join(p *member) {
	p.wanted = true
	s.step(p, event{Kind: eventJoin})
	s.settle(p)
}

func (s stage) holds(p *member) bool { return p.m.status.Phase == Holding }

// save and fail over: the store goes back to an earlier state.
func (s stage) save() { s.store.save() }

func (s stage) failOver() { s.restore() }

// record returns the record of node ID 0.
func (s stage) record() string { return string(s.store.values[s.key(0)]) }

// There, the window of timestamps was written without checking who leads, so a
// replaced leader moved it. https://github.com/tikv/pd/issues/9157
//
// Here, a renewal compares the record's bytes, and the successor has changed
// them.
func staleLeader(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.renewing(a) // now a is suspended
	b := s.process(0, 0)
	s.passOn(b)
	before := s.record()
	s.answer(a)
	after := s.record()
	s.settle(a)
	made := s.busy(60_000, a, b)
	s.promise(after == before, "the late renewal changes nothing")
	s.promise(made[0] == 0 && made[1] > 0, "one of the two has IDs")
}

// There, a leader that was elected again continued with what it remembered of
// its first term, below what was given out since.
// https://github.com/tikv/pd/issues/8836
//
// Here, an ended grant is forgotten, and the next begins at the record's mark.
func earlierTerm(s stage) {
	a, b := s.process(0, 0), s.process(0, 0)
	s.settle(a)
	for range 3 {
		for _, p := range []*member{a, b} {
			if other := s.members[1-p.id]; s.holds(other) {
				s.leave(other)
			}
			s.join(p)
			s.sleep(2500, p)
			s.setup(s.make(p, 14_000) == 14_000, "a burst runs ahead of the clock")
		}
	}
}

// There, two tablets both believed to be the primary, each with a block of the
// sequence in memory. https://github.com/vitessio/vitess/issues/3116
//
// Here, the second gets nothing while the first may use its window, and begins
// above it.
func twoPrimaries(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.make(a, 50)
	until := a.m.status.Until.UnixMilli() * simMS
	s.sleep(2000)
	a.drift, a.driftAt = -1, s.Now // a is cut off, and its clock stands still
	b := s.process(0, 0)
	for s.Now <= until {
		s.settle(b)
		s.make(b, 10)
		s.sleep(1000, b)
		s.promise(s.Now > until || !s.holds(b), "nobody else has the node ID while its window lasts")
	}
	s.passOn(b)
	s.promise(s.make(a, 100) == 100, "the first one's memory is good still")
}

// There, two processes found the store empty, both wrote, and both continued as
// node ID 0 whatever the results (SnowflakeZookeeperHolder.init). Here, a claim
// is a compare-and-swap with an absent record: the second is refused.
func firstStart(s stage) {
	a, b := s.process(0, 0), s.process(0, 0)
	for _, p := range []*member{a, b} {
		for p.waiting.Kind != actionCAS {
			s.answer(p)
		}
	}
	s.setup(a.waiting.Old == nil && b.waiting.Old == nil, "both have seen an empty store")
	s.answer(a)
	s.answer(b)
	s.settle(a, b)
	made := s.busy(20_000, a, b)
	s.promise(made[0] > 0 && made[1] == 0, "the first has the node ID")
}

// There, the check of the registered clock threw an exception, and its handler
// took a node ID from a local file and returned success
// (SnowflakeZookeeperHolder.init). Here, a claim with an unknown result is
// read, and it belongs to another process.
func swallowed(s stage) {
	a, b := s.process(0, 0), s.process(0, 0)
	for a.waiting.Kind != actionCAS {
		s.answer(a)
	}
	s.settle(b)
	s.lose(a)
	s.settle(a)
	made := s.busy(20_000, a, b)
	s.promise(made[0] == 0 && made[1] > 0, "who wrote first has the node ID")
}

// There, the sequence restarted whenever the clock's tick was different, even
// an earlier one: 30 of 80 IDs were made twice over a step of 2 ms (measured).
// Here, the word of a term only grows; a clock that is behind pulls nothing
// back.
func clockBack(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	for range 5 {
		s.renewing(a)
		s.make(a, 40)
		a.offset -= 2 * simMS
		s.settle(a)
		s.promise(s.make(a, 40) == 40, "2 ms back are no reason to refuse")
	}
}

// There, close deletes the claim without checking its owner, so a third process
// gets a node ID that the second has. Here, giving back also compares: a
// replaced owner leaves the record alone.
func closeForeign(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.make(a, 50)
	b := s.process(0, 0)
	s.passOn(b) // a is suspended
	s.leave(a)
	c := s.process(0, 0)
	s.settle(c)
	made := s.busy(60_000, b, c)
	s.promise(a.m.status.Phase == Idle, "the first has left")
	s.promise(made[0] > 0 && made[1] == 0, "the second has the node ID, and the third has not")
}

// There, the two halves of a cluster gave the same node IDs to joining members.
// https://github.com/hazelcast/hazelcast/issues/11967
//
// Here, a member without a store has only the rest of its window, whatever it
// believes.
func splitBrain(s stage) {
	a, b := s.process(0, 1), s.process(0, 1)
	s.settle(a, b)
	s.make(a, 10)
	s.make(b, 10)
	until := b.m.status.Until.UnixMilli() * simMS
	cut := s.Now
	var joined *member
	for s.Now < cut+2*minute {
		s.make(a, 5)
		s.settle(a)
		made := s.make(b, 5)
		for range 3 {
			if b.waiting != nil {
				s.lose(b) // no answer comes
			}
		}
		s.promise(made == 0 || s.Now <= until, "without the store there are no IDs when the window is over")
		if joined == nil && s.Now > until {
			joined = s.process(0, 1)
		}
		if joined != nil {
			s.settle(joined)
			s.make(joined, 5)
			s.settle(joined)
		}
		s.sleep(500, a)
	}
	s.setup(joined != nil && s.holds(joined) && joined.t.node == b.t.node, "the node ID has passed on")
}

// There, a generator knows only the clock, so if all are restarted with the
// clock set back, they repeat their IDs. hazelcast 17975, cockroach 13441
//
// Here, the records contain what was used.
func allRestart(s stage) {
	for _, behind := range []int64{0, 300, 700} {
		var all []*member
		for node := range uint64(3) {
			all = append(all, s.slow(node, node, behind))
		}
		s.settle(all...)
		for _, p := range all {
			s.promise(s.make(p, 1000) == 1000, "a little back is no reason to refuse")
		}
		for _, p := range all {
			s.leave(p)
			s.end(p)
		}
	}
	p := s.slow(0, 0, 3_600_000)
	s.settle(p)
	s.promise(s.busy(10_000, p)[0] == 0, "an hour back there are no IDs")
}

// There, node IDs belong to sessions, and making an ID does not compare the
// clock with the session's end.
// https://github.com/cockroachdb/cockroach/issues/90459
//
// Here, every slot is below its window's end, however late it is by other
// clocks.
func sessionOver(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.make(a, 50)
	s.sleep(a.m.status.Until.UnixMilli() - 300 - s.Now/simMS)
	a.waiting = nil                // a renewal without a caller
	a.drift, a.driftAt = -1, s.Now // its clock stands still from here on
	b := s.process(0, 0)
	s.passOn(b)
	made := s.make(a, 20_000)
	s.promise(made == 300*16, "the first makes what is left of its window to the last slot, and no more")
}

// There, a failed heartbeat is kept as a state that no generator reads, so a
// process that is cut off from its store makes IDs after another one has its
// node ID; examples/lost-lease runs it. Here, the generator itself ends with the
// window.
func leaseLost(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.make(a, 50)
	b := s.process(0, 0) // from here on, a is cut off: only b is answered
	s.passOn(b)
	for range 20 {
		s.promise(s.make(a, 100) == 0, "a process whose window has ended makes no ID")
		s.make(b, 100)
		s.sleep(100, b)
	}
}

// There, a call that was refused because the clock had gone back had already
// set the sequence to 0. https://github.com/twitter-archive/snowflake/issues/6
//
// Here, a refused call does not change the word.
func sequenceReset(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.setup(s.make(a, 5) == 5, "there are IDs")
	a.offset = -5 * second
	id, err := a.g.TryNext()
	s.setup(id == 0 && err != nil, "far back, a call is refused")
	a.offset = 0
	s.promise(s.make(a, 5) == 5, "in the same tick it continues")
}

// There, a host whose clock is up to 10 s behind is given another host's
// node ID: the comparison of clocks allows that much
// (SnowflakeServer.sanityCheckPeers). Here, the node ID begins at its mark for
// any next owner.
func slowerClock(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.make(a, 1000)
	s.leave(a)
	b := s.slow(0, 0, 900)
	s.settle(b)
	s.promise(s.busy(20_000, b)[0] > 0, "the next one has the node ID, and IDs")
}

// There, the counter is behind when an asynchronous replica takes over, and the
// same shard's node ID is used (icicle, README; the same holds for any Redis).
// Here, the store is fenced: nothing begins before the end of what may have
// been granted.
func staleReplica(s stage) {
	s.save()
	a := s.process(0, 0)
	s.settle(a)
	s.busy(3000, a)
	s.failOver()
	b := s.process(0, 0)
	s.settle(b)
	made := s.busy(15_000, a, b)
	s.promise(made[0] > 0 && made[1] == 0, "the old owner has what is left of its window, and nobody else has anything")
	made = s.busy(120_000, a, b)
	s.promise(made[0]+made[1] > 0, "after the floor there are IDs again")
}

// Found by the model, for a restore in which only a floor was set: a replaced
// owner finds its own record again, and renews it. Here, a fence gives every
// record new bytes.
func replacedOwner(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.save()
	s.renewing(a) // now a is suspended
	b := s.process(0, 0)
	s.passOn(b)
	s.failOver()
	s.answer(a)
	s.settle(a)
	made := s.busy(120_000, a, b)
	s.promise(made[1] > 0, "the new owner has what is left of its window")
}

// There, a restored store counts its revisions from the backup on, and a
// comparison of revisions mistakes another content for the same. etcd 16028
// Here, contents are compared, and no two are equal.
func revisionsAgain(s stage) {
	a := s.process(0, 0)
	s.settle(a)
	s.save()
	s.renewing(a)
	s.settle(a)   // the revision after the backup's, which the fence will reuse
	s.renewing(a) // compared with that one; now a is suspended
	b := s.process(0, 0)
	s.passOn(b)
	s.failOver()
	s.answer(a)
	s.settle(a)
	made := s.busy(120_000, a, b)
	s.promise(made[1] > 0, "the new owner has what is left of its window")
}
