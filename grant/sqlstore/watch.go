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

// Check returns the dangers that do not prevent the use of the database, one
// sentence each: for example, replicas that may lack commits when they are
// promoted, or nodes that may show stale data. Conditions that New rejects are
// included only if they changed since.
func (s *Store) Check(ctx context.Context) (all []string, err error) {
	call, leave, err := s.enter(ctx)
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

// look returns the current dangers.
func (s *Store) look(ctx context.Context, m *memory) (found []finding, err error) {
	err = s.d.check(ctx, s.db)
	switch {
	case errors.Is(err, ErrUnfit):
		found = append(found, finding{what: err.Error(), text: err.Error()})
	case err != nil && !errors.Is(err, ErrReplica): // calls report that
		return nil, err
	}
	more, err := s.d.findings(ctx, s.db, m)
	return append(found, more...), err
}

// startWatch passes current dangers to Warn, and starts the goroutine that
// reports changes. Close ends it.
func (s *Store) startWatch(ctx context.Context) error {
	m := new(memory)
	found, err := s.look(ctx, m)
	if err != nil {
		return err
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
