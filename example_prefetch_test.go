package firn_test

import (
	"context"
	"fmt"
	"time"

	"github.com/firnid/firn"
)

// A client that requests the next IDs before it needs them. Callers wait only
// for the first batch, unless they are faster than the source.
func ExamplePrefetchOptions() {
	g, err := firn.NewGenerator(firn.MustParseLayout("twitter"), firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	p := firn.NewPrefetcher(g, &firn.PrefetchOptions{Count: 100, MaxCount: 1000, Validity: time.Minute})
	for range 3 {
		fmt.Println(p.Next(ctx))
	}
	fmt.Println(p.Close(ctx))
	fmt.Println(p.Next(ctx))
	// Output:
	// 2123748187960274944 <nil>
	// 2123748187960274945 <nil>
	// 2123748187960274946 <nil>
	// <nil>
	// 0 firn: already closed
}
