package rpcapi

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// hopKey is the metadata of a call that a server sends for one of its clients. Such a
// call is answered by the server that gets it, or by nobody, so that no call goes in
// circles.
const hopKey = "firn-hop"

type forwarded struct{}

// withHop notes in the context whether a call was forwarded.
func withHop(ctx context.Context) context.Context {
	if len(metadata.ValueFromIncomingContext(ctx, hopKey)) > 0 {
		return context.WithValue(ctx, forwarded{}, true)
	}
	return ctx
}

// Forwarded reports whether the call of a context was sent by another server, for one of
// its clients.
func Forwarded(ctx context.Context) bool { return ctx.Value(forwarded{}) != nil }
