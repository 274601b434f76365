package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/firnid/firn/grant"
)

// checkEvery is how often a Store checks whether Open would still accept the
// database.
const checkEvery = 10 * time.Second

// Dangers returns the dangers of the database, one sentence each: for example,
// replicas that may lack commits when they are promoted, or nodes that may show
// stale data, what Open would reject, and a list of standbys that was emptied
// since an earlier call. The text of a danger stays the same while it lasts.
func (s *store) Dangers(ctx context.Context) (dangers []string, err error) {
	call, leave, err := s.begun(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err = s.judge(call); err == nil {
		dangers, err = s.dialect.dangers(call, s.db, &s.waited)
	}
	if err != nil {
		return nil, failed(ctx, "look at the settings", err)
	}
	if unfit := s.unfit.Load(); unfit != nil {
		dangers = append(dangers, (*unfit).Error()+": until that is corrected, no node ID is acquired or renewed")
	}
	return dangers, nil
}

// judge makes calls fail while Open would reject the database.
func (s *store) judge(ctx context.Context) error {
	unfit := s.dialect.check(ctx, s.db)
	if unfit == nil || errors.Is(unfit, ErrReplica) { // every call finds a replica
		unfit = s.checkTable(ctx)
	}
	switch {
	case unfit == nil:
		s.unfit.Store(nil)
	case errors.Is(unfit, grant.ErrUnfit), errors.Is(unfit, ErrReplica):
		s.unfit.Store(&unfit)
	default:
		return unfit
	}
	return nil
}

// watch judges the database periodically, until Close begins.
func (s *store) watch() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(checkEvery*9/10 + rand.N(checkEvery/5)): // processes should not check at the same moment
		}
		ctx, cancel := context.WithTimeout(s.ctx, checkEvery)
		_ = s.judge(ctx) // the calls of members report that it does not answer
		cancel()
	}
}
