package service

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/operate/members"
)

// A StoreAdmin lists, shows and changes sequencers and servers of a store, for
// all its servers. Its calls stop waiting for a store that has been silent for
// five seconds. It is safe for concurrent use. It must be made by
// NewStoreAdmin, and is closed by its StoreBackend.
type StoreAdmin struct {
	store   grant.Store
	silence *silenceWatch

	// rejoin lets a sequencer of this server follow a Create or an Attach.
	rejoin func(ctx context.Context, name string)

	// Changes are logged with this client; nil logs none.
	log    *slog.Logger
	client Client

	// What lists have: the sequencers that sees allows, and the totals of
	// servers if seesAll is set; a nil sees means all.
	sees    func(name string) bool
	seesAll bool
}

// NewStoreAdmin makes a StoreAdmin. silent is nil if it is unknown whether the
// store answers: then calls wait until their contexts are done.
func NewStoreAdmin(s grant.Store, silent Silence) *StoreAdmin {
	return &StoreAdmin{store: s, silence: newSilenceWatch(s, silent), rejoin: func(context.Context, string) {}}
}

// Store returns the store of the StoreAdmin.
func (a *StoreAdmin) Store() grant.Store { return a.store }

// askStore calls the store, unless it has been silent for too long.
func askStore[T any](ctx context.Context, a *StoreAdmin, use storeUse, call func(context.Context) (T, error)) (result T,
	err error) {
	err = a.silence.whileAnswering(ctx, use, func(ctx context.Context) (err error) {
		result, err = call(ctx)
		return err
	})
	return result, storeError(ctx, err)
}

// By returns the StoreAdmin of one client: each change is logged with that
// client.
func (a *StoreAdmin) By(c Client, log *slog.Logger) *StoreAdmin {
	b := *a
	b.client, b.log = c, log
	return &b
}

// Sequencers calls yield for each sequencer that the client may see, in the
// order of names. An error concerns the record of the sequencer.
func (a *StoreAdmin) Sequencers(ctx context.Context, yield func(info grant.Info, err error) bool) error {
	return storeError(ctx, a.silence.whileAnswering(ctx, storeUse{}, func(ctx context.Context) error {
		return grant.Sequencers(ctx, a.store, func(info grant.Info, err error) bool {
			return a.sees != nil && !a.sees(info.Name) || yield(info, err)
		})
	}))
}

// Lookup returns one sequencer, or an error that matches grant.ErrNotFound.
func (a *StoreAdmin) Lookup(ctx context.Context, name string) (grant.Info, error) {
	return askStore(ctx, a, storeUse{}, func(ctx context.Context) (grant.Info, error) {
		return grant.Lookup(ctx, a.store, name)
	})
}

// Nodes calls yield for each node ID of a sequencer that was ever used.
func (a *StoreAdmin) Nodes(ctx context.Context, name string, yield func(n grant.NodeInfo, err error) bool) error {
	return storeError(ctx, a.silence.whileAnswering(ctx, storeUse{}, func(ctx context.Context) error {
		return grant.Nodes(ctx, a.store, name, yield)
	}))
}

// Members returns the servers that have announced themselves in the store, with
// what the client may see of them.
func (a *StoreAdmin) Members(ctx context.Context) ([]members.Server, error) {
	return askStore(ctx, a, storeUse{}, func(ctx context.Context) ([]members.Server, error) {
		all, err := members.List(ctx, a.store, time.Now())
		for i := range all {
			if a.sees != nil && !a.seesAll {
				all[i] = all[i].For(a.sees)
			}
		}
		return all, err
	})
}

// Create creates a sequencer, or creates it again. Then, as after Attach, this
// server has its node ID again if it has the sequencer open. If the time of the
// layout has ended or not begun, the error is a CreationError.
func (a *StoreAdmin) Create(ctx context.Context, name string, config grant.Config) (grant.Info, error) {
	if err := config.Check(); err != nil {
		return grant.Info{}, err // not an error of the store
	}
	info, err := a.change(ctx, opCreate, name, func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Create(ctx, s, name, config, nil)
	})
	switch {
	case err == nil:
		a.rejoin(ctx, name)
	case errors.Is(err, firn.ErrTimeOver), errors.Is(err, firn.ErrBeforeEpoch):
		err = &CreationError{[]FieldError{{"layout", textfmt.Message(err)}}}
	}
	return info, err
}

// Attach is grant.Attach.
func (a *StoreAdmin) Attach(ctx context.Context, name string) (grant.Info, error) {
	info, err := a.change(ctx, opAttach, name, func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Attach(ctx, s, name)
	})
	if err == nil {
		a.rejoin(ctx, name)
	}
	return info, err
}

// Detach is grant.Detach: it waits for windows to end until ctx is done, and
// continues when it is called again.
func (a *StoreAdmin) Detach(ctx context.Context, name string) (grant.Info, error) {
	return a.change(ctx, opDetach, name, func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Detach(ctx, s, name, nil)
	})
}

// Destroy is grant.Destroy, and waits as Detach does.
func (a *StoreAdmin) Destroy(ctx context.Context, name string) (grant.Info, error) {
	return a.change(ctx, opDestroy, name, func(ctx context.Context, s grant.Store) (grant.Info, error) {
		return grant.Destroy(ctx, s, name, nil)
	})
}

// change makes a change of a sequencer, and logs it.
func (a *StoreAdmin) change(ctx context.Context, what, name string,
	call func(context.Context, grant.Store) (grant.Info, error)) (grant.Info, error) {
	ctx = grant.WithOperator(ctx, a.client.operator())
	var w WriteOutcome
	s := w.Wrap(a.store)
	do := func(ctx context.Context) (grant.Info, error) { return call(ctx, s) }
	info, err := askStore(ctx, a, storeUse{writes: true}, do)
	if err != nil && w.unknown.Load() && !w.applied.Load() {
		// Only another write settles one of unknown result. The client may have
		// left.
		later, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		if again, e := askStore(later, a, storeUse{writes: true}, do); e == nil {
			info, err = again, nil
		}
	}
	if a.log != nil {
		Audit(ctx, a.log, a.client, what, w.Result(ctx, a.store, name, err), name, err)
	}
	return info, err
}
