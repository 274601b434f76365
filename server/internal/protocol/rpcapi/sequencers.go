package rpcapi

import (
	"context"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/internal/access/auth"
	"github.com/firnid/firn/server/internal/ids/textfmt"
	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
	"github.com/firnid/firn/server/internal/service"
)

// admin authorizes the caller and finds the StoreAdmin.
func (s *Server) admin(ctx context.Context, need auth.Action, name ...string) (*service.StoreAdmin, error) {
	creds := credsOf(ctx)
	if p := s.front.Allow(creds, need, strings.Join(name, "")); p != nil {
		return nil, invalid("name", p)
	}
	a, p := s.front.Admin(creds, name...)
	if p != nil {
		return nil, invalid("name", p)
	}
	return a, nil
}

func toProto(i grant.Info) *firnv1.Sequencer {
	q := &firnv1.Sequencer{
		Name: i.Name, State: i.State.String(), Layout: i.Config.Layout.String(),
		MaxAhead: durationpb.New(i.Config.MaxAhead), Window: durationpb.New(i.Config.Window),
		LongestWindow: durationpb.New(i.LongestWindow),
		Incarnation:   i.Incarnation, Created: timestamppb.New(i.Created), Prefix: i.Config.Prefix,
		MovedTo: i.MovedTo,
	}
	if !i.Floor.IsZero() {
		q.Floor = timestamppb.New(i.Floor)
	}
	if c := i.LastChange; c != (grant.Change{}) {
		q.LastChange = &firnv1.Change{What: c.What, By: c.By, At: timestamppb.New(c.At)}
	}
	if i.Config.Nodes != nil {
		q.NodeRange = i.Config.Nodes.String()
	}
	return q
}

// List returns the sequencers that the caller may see.
func (s *Server) List(ctx context.Context, _ *firnv1.ListRequest) (*firnv1.ListResponse, error) {
	a, err := s.admin(ctx, auth.See)
	if err != nil {
		return nil, err
	}
	limited, cancel := s.front.Limited(ctx)
	defer cancel()
	r := new(firnv1.ListResponse)
	err = a.Sequencers(limited, func(info grant.Info, err error) bool {
		if err != nil {
			r.Sequencers = append(r.Sequencers, &firnv1.Sequencer{Name: info.Name, Error: textfmt.Message(err)})
		} else {
			r.Sequencers = append(r.Sequencers, toProto(info))
		}
		return true
	})
	if err != nil {
		return nil, s.backendError(ctx, err)
	}
	return r, nil
}

// Get returns one sequencer with its node IDs.
func (s *Server) Get(ctx context.Context, q *firnv1.GetRequest) (*firnv1.GetResponse, error) {
	a, err := s.admin(ctx, auth.See, q.GetName())
	if err != nil {
		return nil, err
	}
	limited, cancel := s.front.Limited(ctx)
	defer cancel()
	info, err := a.Lookup(limited, q.GetName())
	if err != nil {
		return nil, s.adminError(ctx, q.GetName(), err)
	}
	r := &firnv1.GetResponse{Sequencer: toProto(info)}
	err = a.Nodes(limited, q.GetName(), func(n grant.NodeInfo, err error) bool {
		if err != nil {
			r.Damaged = append(r.Damaged, n.Node)
		} else {
			r.Nodes = append(r.Nodes, &firnv1.Node{Node: n.Node, Host: n.Host, Held: n.Held,
				Until: timestamppb.New(n.Until), Written: timestamppb.New(n.Written)})
		}
		return true
	})
	if err != nil {
		return nil, s.backendError(ctx, err)
	}
	return r, nil
}

// Create creates a sequencer.
func (s *Server) Create(ctx context.Context, q *firnv1.CreateRequest) (*firnv1.CreateResponse, error) {
	a, err := s.admin(ctx, auth.Change, q.GetName())
	if err != nil {
		return nil, err
	}
	c, err := creation(q).Config(a)
	if err != nil {
		return nil, s.adminError(ctx, q.GetName(), err)
	}
	limited, cancel := s.front.Limited(ctx)
	defer cancel()
	info, err := a.Create(limited, q.GetName(), c)
	if err != nil {
		return nil, s.adminError(ctx, q.GetName(), err)
	}
	return &firnv1.CreateResponse{Sequencer: toProto(info)}, nil
}

// creation returns the fields that are set.
func creation(q *firnv1.CreateRequest) *service.Creation {
	n := new(service.Creation)
	if q.GetLayout() != "" {
		n.Layout = &q.Layout
	}
	if d := q.GetMaxAhead(); d != nil {
		n.MaxAhead = new(durationText(d))
	}
	if d := q.GetWindow(); d.AsDuration() != 0 {
		n.Window = new(durationText(d))
	}
	if q.GetPrefix() != "" {
		n.Prefix = &q.Prefix
	}
	return n
}

// durationText returns a duration as text; that of an invalid one is not one.
func durationText(d *durationpb.Duration) string {
	if d.CheckValid() != nil {
		return d.String()
	}
	return d.AsDuration().String()
}

// Attach lets all servers use a sequencer again.
func (s *Server) Attach(ctx context.Context, q *firnv1.AttachRequest) (*firnv1.AttachResponse, error) {
	i, err := s.changeSequencer(ctx, q.GetName(), service.AttachWithin)
	return &firnv1.AttachResponse{Sequencer: i}, err
}

// Detach makes all servers give their node IDs back.
func (s *Server) Detach(ctx context.Context, q *firnv1.DetachRequest) (*firnv1.DetachResponse, error) {
	i, err := s.changeSequencer(ctx, q.GetName(), service.DetachWithin)
	return &firnv1.DetachResponse{Sequencer: i}, err
}

// Destroy is a permanent Detach.
func (s *Server) Destroy(ctx context.Context, q *firnv1.DestroyRequest) (*firnv1.DestroyResponse, error) {
	i, err := s.changeSequencer(ctx, q.GetName(), service.DestroyWithin)
	return &firnv1.DestroyResponse{Sequencer: i}, err
}

// changeSequencer answers with the sequencer as it is, also if the change
// continues.
func (s *Server) changeSequencer(ctx context.Context, name string, do service.LimitedChange) (*firnv1.Sequencer,
	error) {
	a, err := s.admin(ctx, auth.Change, name)
	if err != nil {
		return nil, err
	}
	info, _, err := do(ctx, a, name, s.front.RequestTimeout)
	if err != nil {
		return nil, s.adminError(ctx, name, err)
	}
	return toProto(info), nil
}
