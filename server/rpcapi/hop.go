package rpcapi

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/firnid/firn/server/auth"
	"github.com/firnid/firn/server/members"
	"github.com/firnid/firn/server/rpcapi/firnv1"
	"github.com/firnid/firn/server/service"
)

// hopKey is the metadata key that marked forwarded calls in version 1. Such a
// call did not identify its server, which could be any server at that address,
// so it is refused.
const hopKey = "firn-hop"

func refuseVersion(version uint32) error {
	return fail(service.HopVersion, fmt.Sprintf("this server accepts forwarded calls of version %d, not %d: run the same release on all servers of a store", service.HopProtocol, version), 0)
}

// refuseOld refuses a forwarded call of version 1.
func refuseOld(ctx context.Context) error {
	if len(metadata.ValueFromIncomingContext(ctx, hopKey)) > 0 {
		return refuseVersion(1)
	}
	return nil
}

// Forward makes IDs for a client of another server.
func (s *Server) Forward(ctx context.Context, r *firnv1.ForwardRequest) (*firnv1.ForwardResponse, error) {
	name := r.GetSequencer()
	if err := s.check(ctx, auth.Take, name); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, r); err != nil {
		return nil, err
	}
	if name == "" || r.GetCount() == 0 {
		return nil, invalid("sequencer", "sequencer and count are required")
	}
	next, err := s.next(service.WithForwarded(ctx), "Forward", name, r.GetForm(), int64(r.GetCount()))
	if err != nil {
		return nil, err
	}
	// Read the owner after taking the IDs: if the node ID was lost meanwhile, the
	// owner does not match the IDs, and the calling server notices.
	return &firnv1.ForwardResponse{Call: r.GetCall(), Owner: s.c.Peer.Owner(name), Next: next}, nil
}

// admit returns nil if a hop is meant for this server and comes from one of its
// store.
func (s *Server) admit(ctx context.Context, r *firnv1.ForwardRequest) error {
	if r.GetVersion() != service.HopProtocol {
		return refuseVersion(r.GetVersion())
	}
	if s.c.Peer == nil {
		return fail(service.NoStore, "this server has no store to share with another server", 0)
	}
	limited, cancel := context.WithTimeout(ctx, s.c.Limit)
	defer cancel()
	err := s.c.Peer.Admit(limited, service.Hop{Member: r.GetMember(), Proof: members.Proof{Member: r.GetCaller(), Record: int(r.GetRecord()), Nonce: r.GetNonce()}})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, service.ErrOtherMember):
		return fail(service.OtherMember, err.Error(), 0)
	case errors.Is(err, members.ErrOtherStore):
		return fail(service.OtherStore, "this server and the calling server use different stores", 0)
	}
	return s.failed(ctx, "Forward", err)
}
