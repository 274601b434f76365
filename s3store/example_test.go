package s3store_test

import (
	"context"
	"log"

	"github.com/firnid/firn/s3store"
)

// A program opens the store once. This example needs a bucket, so it is only
// compiled.
func Example() {
	ctx := context.Background()
	store, err := s3store.Open(ctx, &s3store.Options{Bucket: "ids", Prefix: "firn"})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = store.Close() }()
}
