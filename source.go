package firn

import "context"

// A Source makes batches of IDs: it is a Generator, or asks one over a network.
// NextBatch returns between 1 and n IDs, or an error, soon after ctx is done at
// the latest. It must be safe for concurrent use by multiple goroutines.
type Source = SourceOf[ID]

// A SourceOf is a Source of 64-bit or 128-bit IDs.
type SourceOf[I AnyID[I]] interface {
	NextBatch(ctx context.Context, n int) (BatchOf[I], error)
}
