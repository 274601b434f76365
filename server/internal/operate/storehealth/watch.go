package storehealth

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/firnid/firn/grant"
)

// checkEvery is how often Watch checks a Store.
const checkEvery = 10 * time.Second

// Watch checks a Store now and periodically until ctx is done, and logs when a
// danger appears and when it is resolved.
func Watch(ctx context.Context, s grant.Store, log *slog.Logger) {
	c, ok := grant.As[grant.Dangers](s)
	if !ok {
		return
	}
	var before []string
	for {
		within, cancel := context.WithTimeout(ctx, checkEvery)
		dangers, err := c.Dangers(within)
		cancel()
		if err == nil { // otherwise the calls of members report it
			for _, d := range dangers {
				if !slices.Contains(before, d) {
					log.Warn("store: " + d)
				}
			}
			for _, d := range before {
				if !slices.Contains(dangers, d) {
					log.Info("store: resolved: " + d)
				}
			}
			before = dangers
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(checkEvery*9/10 + rand.N(checkEvery/5)): // servers should not check at the same moment
		}
	}
}
