package forwarding

import (
	"context"
	"errors"
	"fmt"

	"github.com/firnid/firn/sequencer"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/service"
)

// A Receiver accepts calls that other servers of the store forward. It must be
// made by NewReceiver, and is safe for concurrent use.
type Receiver struct {
	cluster *service.Cluster
	self    string
	proofs  *members.Verifier
}

var _ service.Receiver = (*Receiver)(nil)

// NewReceiver makes a Receiver for the server that self announces.
func NewReceiver(c *service.Cluster, self *members.Announcer) *Receiver {
	return &Receiver{cluster: c, self: self.ID(), proofs: members.NewVerifier(c.Store())}
}

// Admit returns nil if a hop is meant for this server and comes from a server
// of its store.
func (r *Receiver) Admit(ctx context.Context, h service.Hop) error {
	if h.Member != r.self {
		return service.ErrOtherMember
	}
	err := r.proofs.Verify(ctx, h.Proof)
	if err != nil && !errors.Is(err, members.ErrOtherStore) {
		return fmt.Errorf("%w: %w", sequencer.ErrUnavailable, err)
	}
	return err
}

// Owner returns the owner of this server's node ID of a sequencer.
func (r *Receiver) Owner(name string) string {
	s, ok := r.cluster.State(name)
	if !ok || s.Phase != sequencer.Attached && s.Phase != sequencer.Losing {
		return ""
	}
	return s.Owner
}
