package service

import (
	"context"
	"errors"
	"time"

	"github.com/firnid/firn/grant"
)

// A LimitedChange changes a sequencer within the limit of a request. pending
// reports that other processes have yet to follow: the store has the state that
// keeps windows from growing, and repeating the call shows whether it is done.
type LimitedChange func(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info,
	pending bool, err error)

// AttachWithin is a LimitedChange that attaches a sequencer. It is never
// pending.
func AttachWithin(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool,
	err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	info, err = a.Attach(limited, name)
	return info, false, err
}

// DetachWithin is a LimitedChange that detaches a sequencer.
func DetachWithin(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool,
	err error) {
	return changeWithin(ctx, a, name, limit, a.Detach, grant.Detaching, grant.Detached)
}

// DestroyWithin is a LimitedChange that destroys a sequencer.
func DestroyWithin(ctx context.Context, a *StoreAdmin, name string, limit time.Duration) (info grant.Info, pending bool,
	err error) {
	return changeWithin(ctx, a, name, limit, a.Destroy, grant.Destroying, grant.Destroyed)
}

func changeWithin(ctx context.Context, a *StoreAdmin, name string, limit time.Duration,
	do func(context.Context, string) (grant.Info, error), through, last grant.State,
) (info grant.Info, pending bool, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	info, err = do(limited, name)
	if err == nil || errors.Is(err, grant.ErrNotFound) || limited.Err() == nil || ctx.Err() != nil {
		return info, false, err
	}
	later, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	now, lookup := a.Lookup(later, name)
	switch {
	case lookup != nil:
		err = lookup
	case now.State == through || now.State == last:
		return now, true, nil
	}
	// Nothing was started: the caller would wait in vain.
	return info, false, AdminProblem(name, err, limit, true)
}
