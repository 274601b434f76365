package service

import (
	"context"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/config"
)

const (
	// mostNew is how many names can wait to be compared. More at once are not
	// compared: a client that generates names makes no typos.
	mostNew = 100

	// scheme is how many similar names form a series, such as tenant-a to
	// tenant-z, which are not typos.
	scheme = 3
)

// namesakes finds names created by their first use that are similar to others.
// It lists the store in the background, up to once per namesEvery. The zero
// value is ready to use.
type namesakes struct {
	mu    sync.Mutex // guards the fields below
	seen  map[string]struct{}
	queue []string
	runs  bool
	next  time.Time // time of the next list
}

// created schedules the comparison of a name that is being created by its first
// use. It is called by an opening, which Close waits for before it ends the
// background work.
func (c *Cluster) created(name string) {
	if c.c.Alike == nil {
		return
	}
	k := &c.alike
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, again := k.seen[name]; again || len(k.queue) >= mostNew || len(k.seen) >= mostNames {
		return
	}
	if k.seen == nil {
		k.seen = make(map[string]struct{})
	}
	k.seen[name] = struct{}{}
	k.queue = append(k.queue, name)
	if !k.runs {
		k.runs = true
		c.retiring.Go(func() { c.compareNames(c.opens) })
	}
}

// compareNames compares created names until none is left, or ctx is done.
func (c *Cluster) compareNames(ctx context.Context) {
	k := &c.alike
	for {
		k.mu.Lock()
		next := k.next
		k.mu.Unlock()
		select {
		case <-time.After(max(time.Until(next), namesWait)):
		case <-ctx.Done():
			return
		}
		k.mu.Lock()
		names := k.queue
		k.queue, k.next = nil, time.Now().Add(namesEvery)
		k.mu.Unlock()
		c.compare(ctx, names)
		k.mu.Lock()
		if len(k.queue) == 0 {
			k.runs = false
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
	}
}

// namesWait is how long after its creation a name is compared: by then its
// record exists, and names created together need only one list.
const namesWait = time.Second

// compare compares names with older ones in the store.
func (c *Cluster) compare(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, namesEvery)
	defer cancel()
	created := make(map[string]time.Time)
	err := grant.Sequencers(ctx, c.store, func(name string, info grant.Info, err error) bool {
		if err == nil && info.State != grant.Destroyed && info.State != grant.Purged {
			created[name] = info.Created
		}
		return len(created) < mostNames
	})
	if err != nil {
		return // the store does not answer; that is logged elsewhere
	}
	for _, name := range names {
		at, ok := created[name]
		if !ok {
			continue
		}
		var like []string
		for other, before := range created {
			if before.Before(at) && config.IsTypo(name, other) {
				like = append(like, other)
			}
		}
		if len(like) > 0 && len(like) < scheme {
			c.c.Alike(name, config.Nearest(name, like))
		}
	}
}
