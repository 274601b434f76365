package firn

import "context"

// A Source makes batches of 64-bit IDs: it is a Generator, or a Sequencer of
// the packages sequencer and client. See SourceOf for its method.
type Source = SourceOf[ID]

// A SourceOf is a Source of 64-bit or 128-bit IDs. It must be safe for
// concurrent use by multiple goroutines.
type SourceOf[I AnyID] interface {
	// NextBatch returns between 1 and n IDs, or an error. It returns soon after
	// ctx is done at the latest.
	NextBatch(ctx context.Context, n int) (BatchOf[I], error)
}
