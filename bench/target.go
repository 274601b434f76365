package main

import (
	"maps"
	"slices"
)

// An aim is the target of a figure.
type aim struct {
	most  bool // the bound is a maximum, otherwise a minimum
	bound float64
	row   string // what the target is about
}

func (a aim) met(value float64) bool {
	if a.most {
		return value <= a.bound
	}
	return value >= a.bound
}

func atMost(bound float64, row string) aim  { return aim{true, bound, row} }
func atLeast(bound float64, row string) aim { return aim{false, bound, row} }

// aims returns the targets of figures by name. They are goals, not tests: a
// busy machine misses them.
func aims() map[string]aim {
	all := coreAims()
	maps.Copy(all, serverAims())
	return all
}

// coreAims returns the targets of the library.
func coreAims() map[string]aim {
	const (
		next      = "Next, one goroutine"
		fallback  = "portable fallback"
		cursor    = "Cursor, two threads"
		fill      = "Fill of 4096"
		burst     = "100,000 IDs from idle"
		sustained = "sustained at the format's cap"
		text      = "base32/base62 append, strict parse"
		prefetch  = "client prefetch Next"
		uuid      = "uuidv7 costs less than in other UUID libraries"
	)
	return map[string]aim{
		"next/firn:add-counter":         atMost(1.25, next),
		"next/firn/allocs":              atMost(0, next),
		"next128/firn/allocs":           atMost(0, next),
		"purego:next/firn:add-counter":  atMost(1.3, fallback),
		"threads/firn-cursor:alone":     atMost(1.3, cursor),
		"fill/firn-4096:atomic-add":     atMost(0.1, fill),
		"burst-100k/bwmarrin:firn":      atLeast(15, burst),
		"burst-100k/format:firn":        atLeast(15, burst), // even if the machine is too busy to measure the other
		"sustained/firn/of-cap":         atLeast(99, sustained),
		"sustained/firn/cpu":            atMost(20, sustained),
		"append/firn-base32:atomic-add": atMost(3, text),
		"append/firn-base62:atomic-add": atMost(3, text),
		"append/firn-base32/allocs":     atMost(0, text),
		"append/firn-base62/allocs":     atMost(0, text),
		"parse/firn-base32:atomic-add":  atMost(3, text),
		"parse/firn-base62:atomic-add":  atMost(3, text),
		"parse/firn-base32/allocs":      atMost(0, text),
		"parse/firn-base62/allocs":      atMost(0, text),
		"prefetch/firn-1000":            atMost(8, prefetch),
		"uuidv7/google:firn":            atLeast(1, uuid),
		"uuidv7/gofrs:firn":             atLeast(1, uuid),
		"go1.27:uuidv7/std:firn":        atLeast(1, uuid),
	}
}

// serverAims returns the targets of the server and the stores.
func serverAims() map[string]aim {
	const (
		resp    = "RESP against Redis INCR"
		lettuce = "Redis' clients are no slower with Firn"
		web     = "HTTP beside a bare handler of net/http"
		packed  = "packed batches of 10,000"
		clone   = "from a clone to the first ID"
		client  = "client prefetch Next"
		first   = "firn serve cold to first ID"
		joining = "joining 1,000 nodes to etcd"

		hazelcast = "faster than what it replaces: Hazelcast's Flake IDs"
	)
	return map[string]aim{
		"resp/p1/firn:redis":     atLeast(0.95, resp),
		"resp/p16/firn:redis":    atLeast(1, resp),
		"resp/p100/firn:redis":   atLeast(1.8, resp),
		"packed-10000/firn-resp": atLeast(300, packed),
		"packed-10000/firn-http": atLeast(300, packed),

		"resp/p1/firn/cpu:redis":       atMost(1, resp),
		"resp/p16/firn/cpu:redis":      atMost(0.9, resp),
		"resp/p100/firn/cpu:redis":     atMost(0.5, resp),
		"lettuce/sync/firn:redis":      atLeast(1, lettuce),
		"lettuce/async-100/firn:redis": atLeast(1, lettuce),
		"http/next/firn:bare":          atLeast(0.8, web),
		"clone/first-id":               atMost(35, clone),

		"client/prefetch-1/firn:hazelcast":     atLeast(1.5, hazelcast),
		"client/prefetch-100/firn:hazelcast":   atLeast(1.5, hazelcast),
		"client/prefetch-1000/firn:hazelcast":  atLeast(1.5, hazelcast),
		"prefetch/firn-100:hazelcast-member":   atLeast(1.3, hazelcast),
		"prefetch/firn-1000:hazelcast-member":  atLeast(1.3, hazelcast),
		"prefetch/firn-10000:hazelcast-member": atLeast(1.3, hazelcast),

		"client/next":    atMost(8, client),
		"serve/first-id": atMost(60, first),
		"serve/idle-cpu": atMost(0.5, first),
		"serve/rss":      atMost(30, first),
		"join-1000/etcd": atMost(2, joining),
	}
}

// missing reports targets without a figure, so that a part that did not run
// does not look like one that succeeded.
func (r *run) missing(want map[string]aim) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := r.report.find(name); !ok && (r.only == nil || r.only.MatchString(name)) {
			r.skip(name, "it has a target, "+want[name].row+", and was not measured")
		}
	}
}
