package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/sequencer"
)

// openOwn returns the sequencer of a name, with a node ID of this server.
func (b *StoreBackend) openOwn(ctx context.Context, name string, creator *Creator) (*Sequencer, error) {
	for first := true; ; first = false {
		if err := b.makeRoom(ctx, name); err != nil {
			return nil, err
		}
		// An attempt is made even while the store is known to be silent: it may
		// be silent for another name only.
		e, changed, mine, err := b.enter(ctx, name, creator)
		if err != nil {
			return nil, err
		}
		err = b.silence.whileAnswering(ctx, storeUse{writes: true}, func(ctx context.Context) error {
			select {
			case <-changed:
				return nil
			case <-ctx.Done():
				return storeError(ctx, ctx.Err())
			}
		})
		b.mu.RLock()
		now, failure, panicked := e.phase, e.err, e.panicked
		b.mu.RUnlock()
		switch {
		case now == phaseOpen:
			return e.sequencer, nil
		case now == phaseOpening:
			return nil, err
		case mine && panicked != nil:
			panic(panicked)
		case now == phaseFailed && (mine || !first && panicked == nil && !isRefusal(failure)):
			return nil, failure
		case err != nil:
			return nil, err
		}
		// It was closing, or an attempt failed that began before this call, or
		// for a reason that concerns another client only.
	}
}

// enter returns the entry of a name and what the call waits for. If the name
// has none, enter makes it, and begins to open it: then mine is true.
func (b *StoreBackend) enter(ctx context.Context, name string, creator *Creator,
) (e *entry, changed <-chan struct{}, mine bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e = b.byName[name]
	switch {
	case b.closed:
		return nil, nil, false, errShuttingDown
	case e != nil:
		return e, e.changed, false, nil
	case b.full():
		return nil, nil, false, tooManyNames(b.config.MaxSequencers, name)
	}
	name = strings.Clone(name)
	e = &entry{backend: b, name: name, changed: make(chan struct{})}
	b.byName[name] = e
	ended := e.changed
	b.background.Go(func() {
		defer close(ended)
		e.attempt(ctx, creator)
	})
	return e, ended, true, nil
}

// full reports whether there is no room for another name. The caller holds mu.
func (b *StoreBackend) full() bool { return len(b.byName)-b.closing >= b.config.MaxSequencers }

// openTimeout is the longest time for opening a sequencer.
const openTimeout = 10 * time.Second

// attempt opens the sequencer of a name. The caller's context does not end the
// attempt: a claim that is abandoned while the store answers leaves a node ID
// that no server can use before its window ends. Clients that are less patient
// than an opening takes would get no ID, and use up all node IDs.
func (e *entry) attempt(ctx context.Context, creator *Creator) {
	b := e.backend
	err := errNotOpened
	defer func() {
		panicked := recover()
		b.mu.Lock()
		defer b.mu.Unlock()
		if e.phase == phaseOpening {
			e.phase, e.err, e.panicked = phaseFailed, err, panicked
			delete(b.byName, e.name)
		}
	}()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	defer cancel()
	defer context.AfterFunc(b.openingCtx, cancel)()
	err = e.open(limited, creator)
	b.recordOpening(e.name, err)
}

var errNotOpened = errors.New("the attempt to open the sequencer did not finish")

// isRefusal reports whether a sequencer was not created because the client may
// not do that in this way, or does it too fast.
func isRefusal(err error) bool {
	return errors.As(err, new(*createError)) || errors.As(err, new(*rateError)) || errors.Is(err, errNoPrefix) ||
		errors.Is(err, ErrNoSequencer)
}

// maxFailures is how many failures are remembered.
const maxFailures = 10_000

// recordOpening records whether the sequencer of a name could be opened, and
// logs why not: once for a kind of error until it opens, because each request
// for it tries again. The silence of the store and the end of the server have
// their own log.
func (b *StoreBackend) recordOpening(name string, err error) {
	b.mu.Lock()
	last, known := b.failed[name]
	b.configsReadable = b.configsReadable && !isUnreadable(err)
	noted := err != nil && !isRefusal(err)
	if noted {
		if len(b.failed) >= maxFailures {
			clear(b.failed)
		}
		b.failed[name] = failure{err: err, at: time.Now()}
	} else {
		delete(b.failed, name)
	}
	b.mu.Unlock()
	kind, log := kindOf(err), b.config.Options.Logger
	if log == nil || !noted || kind == StoreUnavailable || kind == Draining {
		return
	}
	if !known || kindOf(last.err) != kind {
		log.Warn("sequencer not opened", "sequencer", name, "error", err)
	}
}

var errShuttingDown = fmt.Errorf("%w: the server is shutting down", firn.ErrClosed)

// open opens the sequencer.
func (e *entry) open(ctx context.Context, creator *Creator) error {
	b, name := e.backend, e.name
	options := b.config.Options
	if b.config.Template != nil {
		if err := b.config.Template(name, &options); err != nil {
			return fmt.Errorf("%w: %w", ErrTemplate, err)
		}
	}
	exists, err := b.find(ctx, name, creator, &options)
	if err != nil {
		return err
	}
	if err := options.Nodes.Check(options.Layout); err != nil {
		return fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	if !exists {
		ctx = grant.WithOperator(ctx, creator.client().operator())
	}
	if options.Layout.Bits() == 128 {
		err = openAs[firn.ID128](ctx, e, &options, sequencer.Open128)
	} else {
		err = openAs[firn.ID](ctx, e, &options, sequencer.Open)
	}
	if !exists {
		b.auditCreation(ctx, creator.client(), name, err)
	}
	if err != nil {
		return err
	}
	return e.publish(ctx)
}

// auditCreation logs that a client has created a sequencer by using it: also if
// it was created and could then not be opened.
func (b *StoreBackend) auditCreation(ctx context.Context, client Client, name string, err error) {
	result := "done"
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		switch _, lookup := grant.Lookup(ctx, b.store, name); {
		case errors.Is(lookup, grant.ErrNotFound):
			return
		case lookup != nil:
			result = "unknown"
		}
	}
	Audit(ctx, cmp.Or(b.config.Options.Logger, slog.New(slog.DiscardHandler)), client, opCreate, result, name, err)
}

// find looks a sequencer up. If it exists, its own settings replace those of
// options, which are for sequencers that are created. Otherwise find returns an
// error if the client may not create it.
func (b *StoreBackend) find(ctx context.Context, name string, creator *Creator,
	options *sequencer.Options,
) (exists bool, err error) {
	client := creator.client().Name
	if wait := b.missed.waitTime(client); wait > 0 {
		return false, fmt.Errorf("sequencer %s was not looked up: %w", name,
			&rateError{wait, fmt.Sprintf("this client uses more than %v unknown names a second", b.missed.rate.PerSecond)})
	}
	info, err := grant.Lookup(ctx, b.store, name)
	switch {
	case err == nil:
		options.Layout, options.MaxAhead, options.Window, options.Prefix = info.Config.Layout, nil, 0, ""
		return true, nil
	case !errors.Is(err, grant.ErrNotFound):
		return false, storeError(ctx, err)
	case options.MustExist:
		err = fmt.Errorf("%w %s: this server does not create sequencers by use; create it first", ErrNoSequencer, name)
	default:
		err = creator.check(name, options.Prefix)
	}
	if err == nil {
		if wait := b.creations.waitTime(client); wait > 0 {
			err = &createError{Name: name, Cause: &rateError{wait, fmt.Sprintf("this server creates %v sequencer a second for "+
				"each client by use; create it first (firn sequencer create)", b.creations.rate.PerSecond)}}
		}
	}
	if err != nil {
		b.missed.charge(client)
		return false, err
	}
	b.creations.charge(client)
	return false, nil
}

// openAs opens a sequencer, and sets the fields of e for it.
func openAs[I firn.AnyID, Q interface {
	source[I]
	openSequencer
}](ctx context.Context, e *entry, options *sequencer.Options,
	open func(context.Context, grant.Store, string, *sequencer.Options) (Q, error),
) error {
	q, err := open(ctx, e.backend.store, e.name, options)
	if err != nil {
		return storeError(ctx, err)
	}
	config := q.Config()
	e.openSequencer, e.queue = q, newQueue(config.Layout, q)
	e.sequencer = &Sequencer{Layout: config.Layout, Prefix: config.Prefix,
		Veil: veilOf(e.backend.config.VeilKeys, e.name, config.Layout), try: e.queue.try, waitInLine: e.waitInLine}
	return nil
}

// publish lets calls use an opened sequencer, unless the StoreBackend was
// closed in the meantime.
func (e *entry) publish(ctx context.Context) error {
	b := e.backend
	b.mu.Lock()
	stops := b.closed
	if !stops {
		e.phase, e.since = phaseOpen, time.Now()
	}
	b.mu.Unlock()
	if stops {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateCloseTimeout)
		defer cancel()
		_ = e.Close(late) // a node ID that is not given back is free when its window ends
		return errShuttingDown
	}
	return nil
}
