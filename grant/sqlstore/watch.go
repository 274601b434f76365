package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// A finding is a danger that does not prevent the use of a database.
type finding struct {
	what  string // the same for the same danger, though its text may contain figures
	text  string
	event bool // it has happened, and does not last
}

// A memory is what the last check found out about a database.
type memory struct {
	waited bool  // PostgreSQL has waited for a standby before
	known  bool  // MySQL has returned a number
	alone  int64 // number of transactions that did not wait for a replica
}

// Check returns the dangers of the database, one sentence each: for example,
// replicas that may lack commits when they are promoted, or nodes that may show
// stale data, and what New would reject.
func (s *Store) Check(ctx context.Context) (all []string, err error) {
	call, leave, err := s.begun(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := s.look(call, new(memory))
	if err != nil {
		return nil, failed(ctx, "look at the settings", err)
	}
	for _, f := range found {
		all = append(all, f.text)
	}
	return all, nil
}

// look returns the current dangers, and makes calls fail while New would reject
// the database.
func (s *Store) look(ctx context.Context, m *memory) (found []finding, err error) {
	unfit := s.d.check(ctx, s.db)
	if unfit == nil || errors.Is(unfit, ErrReplica) { // every call finds a replica
		unfit = s.d.checkTable(ctx, s.db, s.schema, s.unquoted)
	}
	switch {
	case unfit == nil:
		s.unfit.Store(nil)
	case errors.Is(unfit, ErrUnfit), errors.Is(unfit, ErrSchema), errors.Is(unfit, ErrReplica):
		s.unfit.Store(&unfit)
		found = append(found, finding{what: unfit.Error(), text: unfit.Error() + ": until that is corrected, no node ID is acquired or renewed"})
	default:
		return nil, unfit
	}
	more, err := s.d.findings(ctx, s.db, m)
	return append(found, more...), err
}

// startWatch passes current dangers to Warn, and starts the goroutine that
// looks for changes. Close ends it.
func (s *Store) startWatch(ctx context.Context) error {
	m := new(memory)
	var found []finding
	if s.o.Warn == nil {
		s.o.Warn = func(string) {}
	} else {
		var err error
		if found, err = s.look(ctx, m); err != nil {
			return err
		}
	}
	for _, f := range found {
		s.o.Warn(f.text)
	}
	s.done.Go(func() { s.watch(m, found) })
	return nil
}

// watch checks the database periodically, until Close begins.
func (s *Store) watch(m *memory, before []finding) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(s.o.CheckEvery*9/10 + rand.N(s.o.CheckEvery/5+1)): // processes should not check at the same moment
		}
		ctx, cancel := context.WithTimeout(s.ctx, s.o.CheckEvery)
		found, err := s.look(ctx, m)
		cancel()
		if err != nil {
			continue // the calls of members report that
		}
		for _, f := range found {
			if f.event || !has(before, f.what) {
				s.o.Warn(f.text)
			}
		}
		for _, f := range before {
			if !f.event && !has(found, f.what) {
				s.o.Warn("resolved: " + f.text)
			}
		}
		before = found
	}
}

func has(found []finding, what string) bool {
	return slices.ContainsFunc(found, func(f finding) bool { return f.what == what })
}
