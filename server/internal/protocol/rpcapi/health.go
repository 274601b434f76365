package rpcapi

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firnid/firn/server/internal/protocol/rpcapi/firnv1"
)

// watchEvery is how often a Watch checks whether the server is ready.
const watchEvery = 5 * time.Second

// A healthServer is the health service. It reports the same as /readyz.
type healthServer struct {
	healthpb.UnimplementedHealthServer
	server *Server
}

func (h *healthServer) status(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	if h.server.drained.Err() != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	if err := h.server.front.Backend.Ready(ctx); err != nil {
		h.server.front.Logger.Debug("not ready", "error", err)
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}

// services returns the services that can be checked; "" is the server.
func services() []string {
	return []string{"", firnv1.IDs_ServiceDesc.ServiceName, firnv1.Sequencers_ServiceDesc.ServiceName}
}

// Check reports whether a service accepts calls.
func (h *healthServer) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse,
	error) {
	if !slices.Contains(services(), r.GetService()) {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &healthpb.HealthCheckResponse{Status: h.status(ctx)}, nil
}

// Watch reports the status whenever it changes, until the server stops.
func (h *healthServer) Watch(r *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	last := healthpb.HealthCheckResponse_UNKNOWN
	for drains := h.server.drained.Done(); ; {
		now := healthpb.HealthCheckResponse_SERVICE_UNKNOWN // not an error, as the protocol requires
		if slices.Contains(services(), r.GetService()) {
			now = h.status(stream.Context())
		}
		if now != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-tick.C:
		case <-drains:
			drains = nil // closed: once is enough
		case <-h.server.stopped.Done():
			return context.Cause(h.server.stopped)
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}
