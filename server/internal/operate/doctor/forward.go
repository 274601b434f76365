package doctor

import (
	"cmp"
	"context"
	"errors"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/service"
	"github.com/firnid/firn/server/internal/service/forwarding"
)

// forwards takes an ID of some sequencer from each server of --forward-to, as
// the server would.
func (r *report) forwards(ctx context.Context) {
	if r.config.Store == nil || len(r.config.Forward.URLs) == 0 {
		return
	}
	var q grant.Info
	err := grant.Sequencers(ctx, r.config.Store, func(i grant.Info, err error) bool {
		if err == nil && i.State == grant.Attached && i.MovedTo == "" {
			q = i
		}
		return q.Name == ""
	})
	switch {
	case err != nil: // already found
		return
	case q.Name == "":
		r.add("forward", Unknown, "", "the store has no sequencer whose IDs could be asked for")
		return
	}
	for _, url := range r.config.Forward.URLs {
		one := r.config.Forward
		one.URLs = []string{url}
		peers := forwarding.New(service.NewStoreAdmin(r.config.Store, nil), one)
		_, err := peers.Take(ctx, q.Name, q.Config.Layout, 1, grant.ErrNodesExhausted)
		peers.Close()
		why, refused := errors.AsType[*forwarding.Error](err)
		switch {
		case err == nil:
			r.add("forward", OK, "", "%s gives IDs of this store", url)
		case !refused:
			r.add("forward", Unknown, "", "%s was not asked for an ID: %v", url, err)
		case why.Result == "exhausted":
			r.add("forward", Unknown, "", "%s has no IDs now: %v", url, why.Cause)
		default:
			r.add("forward", Fix,
				cmp.Or(why.Hint,
					"check the URL, its certificate, the network, and that a server of this store runs there"),
				"%s cannot help: %v", url, why.Cause)
		}
	}
}
