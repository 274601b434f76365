package service

import (
	"context"
	"sync"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/server/config"
)

const (
	// mostNew is how many names wait to be compared. More that come at once are
	// not compared: who makes them up does not mistype.
	mostNew = 100

	// scheme is how many names are like one that is of a series, such as tenant-a
	// to tenant-z, and not mistyped.
	scheme = 3
)

// namesakes finds which of the names that were created by their first use are
// like others. It lists the store in the background, at most once in
// namesEvery. The zero value is ready.
type namesakes struct {
	mu    sync.Mutex // guards what follows
	seen  map[string]struct{}
	queue []string
	runs  bool
	next  time.Time // of the next list
}

// created has a name compared, once, that is created by its first use. It is
// called by an opening: Close waits for these before it ends what runs here.
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

// compareNames compares names that were created until none is left, or ctx is
// done.
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

// namesWait is how long after it is created a name is compared: its record must
// be there, and others that come with it cost no list of their own.
const namesWait = time.Second

// compare compares names with those of the store that are older.
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
		return // the store does not answer, which is logged elsewhere
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
