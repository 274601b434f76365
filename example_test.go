package firn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firnid/firn"
)

// atNoon is a fixed clock, so that the output of examples is always the same.
func atNoon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// Code of the page generator.md.
var _ = func(ctx context.Context) error {
	g, err := firn.NewGenerator(firn.Default(), firn.StaticGrant(7), nil)
	if err != nil {
		return err
	}
	id, err := g.Next(ctx)
	_ = id
	return err
}

// Make an ID, store it, and read it again years later.
func Example() {
	layout := firn.Default()
	g, err := firn.NewGenerator(layout, firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon})
	if err != nil {
		panic(err)
	}
	id, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	text := id.String() // such as 117232474521628677: a tick begins at any of 16 numbers

	id, err = firn.ParseID(text)
	if err != nil {
		panic(err)
	}
	parts, err := layout.Decompose(id)
	fmt.Println(parts.Time, parts.Node, err)
	// Output:
	// 2026-11-20 12:00:00 +0000 UTC 7 <nil>
}

// What an ID tells, the IDs of a day, and an ID as JSON.
func Example_read() {
	id := firn.ID(117934331481448448)
	day := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

	parts, err := firn.Default().Decompose(id)
	fmt.Println(parts.Time, parts.Node, parts.Seq, err)
	lo, hi, err := firn.Default().Range(day, day.AddDate(0, 0, 1))
	fmt.Println("WHERE id BETWEEN", lo, "AND", hi, err)
	text, err := json.Marshal(id)
	fmt.Println(string(text), err)
	// Output:
	// 2026-11-22 10:28:55.739 +0000 UTC 102 0 <nil>
	// WHERE id BETWEEN 117776056320000000 AND 118138444185599999 <nil>
	// "117934331481448448" <nil>
}

// A process with its own node ID, and what Next does if the context ends before
// an ID is free.
func ExampleGenerator() {
	g, err := firn.NewGenerator(firn.MustParseLayout("js53"), firn.StaticGrant(3), nil)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, _ := g.Next(ctx)
	b, _ := g.Next(ctx)
	fmt.Println(a < b, b < 1<<53)
	// Output: true true
}

// A layout with four IDs per tick and none ahead of the clock: the fifth has to
// wait, and the error contains the wait.
func ExampleGenerator_TryNext() {
	layout := firn.MustParseLayout("bits=time:41.node:10.seq:2,epoch=2026-01-01T00:00:00Z")
	g, err := firn.NewGenerator(layout, firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon})
	if err != nil {
		panic(err)
	}
	for range 5 {
		id, err := g.TryNext()
		fmt.Println(id, err)
	}
	// Output:
	// 114484838400028 <nil>
	// 114484838400029 <nil>
	// 114484838400030 <nil>
	// 114484838400031 <nil>
	// 0 firn: no ID is free for another 1ms
}

// A thousand IDs for a bulk insert, in the form that a protocol would send:
// first ID, step and count.
func ExampleGenerator_NextBatch() {
	g, err := firn.NewGenerator(firn.MustParseLayout("hazelcast"), firn.Grant{Node: 1234, From: atNoon()},
		&firn.Options{Now: atNoon, MaxAhead: 15 * time.Second})
	if err != nil {
		panic(err)
	}
	batch, err := g.NextBatch(context.Background(), 1000)
	fmt.Println(batch.Len(), batch.Runs(), err)
	// Output: 1000 [{1176129817804801234 65536 1000}] <nil>
}

// A node ID gets a new owner: the old generator is sealed, and the new one
// begins where it ended, however far it ran ahead of the clock.
func ExampleGrant() {
	old, err := firn.NewGenerator(firn.Default(), firn.Grant{Node: 7, From: atNoon(), Until: atNoon().Add(time.Minute)},
		&firn.Options{Now: atNoon, MaxAhead: time.Second})
	if err != nil {
		panic(err)
	}
	_ = old.Fill(context.Background(), make([]firn.ID, 100_000))
	until := old.Seal()
	fmt.Println("used until", until.Format("15:04:05.000"))

	_, err = old.TryNext()
	fmt.Println(errors.Is(err, firn.ErrSealed))

	heir, err := firn.NewGenerator(firn.Default(), firn.Grant{Node: 7, From: until, Until: until.Add(time.Minute)},
		&firn.Options{Now: atNoon, MaxAhead: time.Second})
	if err != nil {
		panic(err)
	}
	id, _ := heir.TryNext()
	parts, _ := firn.Default().Decompose(id)
	fmt.Println("continues at", parts.Time.Format("15:04:05.000"))
	// Output:
	// used until 12:00:00.025
	// true
	// continues at 12:00:00.025
}

// UUIDs that are unique by construction: the random part begins with sequence
// and node.
func ExampleNewGenerator128() {
	layout := firn.MustParseLayout("uuidv7")
	g, err := firn.NewGenerator128(layout, firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon})
	if err != nil {
		panic(err)
	}
	id, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(id.String()[:23], len(id.String()))
	parts, _ := layout.Decompose128(id)
	fmt.Println(parts.Time, parts.Node)
	// Output:
	// 01a1f8d3-ea00-7000-8001 36
	// 2026-11-20 12:00:00 +0000 UTC 7
}

// The capacity of a layout, to check before using it.
func ExampleLayout() {
	l, err := firn.ParseLayout("hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d nodes, %.0f IDs a second each, until %s\n", l.MaxNode()+1, l.IDsPerSecond(), l.Last().Format(time.DateOnly))
	fmt.Println("bits from the top:", l.Definition())
	// Output:
	// 1024 nodes, 4096000 IDs a second each, until 2089-09-06
	// bits from the top: time:41.seq:12.node:10
}

// The node that made a tweet's ID, in Twitter's own terms.
func ExampleParts() {
	twitter := firn.MustParseLayout("twitter")
	id, err := firn.ParseID("1541815603606036480")
	if err != nil {
		panic(err)
	}
	parts, err := twitter.Decompose(id)
	fmt.Println(parts.Time.Format(time.RFC3339Nano), parts.Node, twitter.NodeParts(parts.Node), parts.Seq, err)
	// Output: 2022-06-28T16:07:40.105Z 378 [{datacenter 11} {worker 26}] 0 <nil>
}

// An invalid node ID is an error that shows the valid range.
func ExampleNodePart() {
	_, err := firn.MustParseLayout("flake-idgen").ParseNode("datacenter=9,worker=32")
	fmt.Println(err)
	// Output: firn: worker 32 is out of range 0..31
}

// The pieces of an ID, as a program could show them.
func ExamplePiece() {
	l := firn.MustParseLayout("lable,mode=time-sequential,cluster=3")
	b := []byte{0x62, 0xf3, 0xf9, 0x5a, 0x00, 0x00, 0x32, 0xc3}
	for _, p := range l.Pieces() {
		fmt.Printf("%-5s %2d bits from %2d: %d\n", p.Field, p.Width, p.Pos, p.Value(b))
	}
	// Output:
	// time  42 bits from 22: 1700000000000
	// seq    6 bits from 16: 0
	// node   3 bits from 13: 1
	// const  1 bits from 12: 1
	// node   8 bits from  4: 44
	// const  4 bits from  0: 3
}

// The bits that are the same in all IDs of a layout.
func ExampleField() {
	for _, p := range firn.MustParseLayout("uuidv7").Pieces() {
		if p.Field == firn.FieldConst || p.Field == firn.FieldZero {
			fmt.Printf("%d bits from %d: %d\n", p.Width, p.Pos, p.Const)
		}
	}
	// Output:
	// 4 bits from 76: 7
	// 2 bits from 62: 2
}

// The settings of a preset, besides epoch and even.
func ExamplePresetKey() {
	for p := range firn.Presets() {
		for _, k := range p.Keys {
			if p.Name == "lable" {
				fmt.Printf("%s=%s: %s\n", k.Name, k.Default, k.About)
			}
		}
	}
	// Output:
	// mode=spread: spread reverses the 42 time bits, time-sequential keeps their order
	// cluster=0: the cluster, 0..15
}

// All presets whose ticks are longer than a millisecond.
func ExamplePresetInfo() {
	for p := range firn.Presets() {
		if p.Layout.Unit() != time.Millisecond {
			fmt.Printf("%s: %v, %s\n", p.Name, p.Layout.Unit(), p.About)
		}
	}
	// Output:
	// sonyflake: 10ms, Sony's sonyflake: ticks of 10 ms
	// xid: 1s, rs/xid, read only: seconds, machine and process as node, a counter
	// objectid: 1s, MongoDB's ObjectID, read only: seconds, a random number per process, a counter
	// ksuid: 1s, Segment's KSUID, read only: seconds and 128 random bits
}

// A client that requests a hundred IDs at a time from a generator, and uses
// none that is older than ten minutes. A Source can also be a server.
func ExamplePrefetcher() {
	g, err := firn.NewGenerator(firn.MustParseLayout("twitter"), firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon})
	if err != nil {
		panic(err)
	}
	var source firn.Source = g
	p := firn.NewPrefetcher(source, &firn.PrefetchOptions{Count: 100, Validity: 10 * time.Minute})
	for range 3 {
		fmt.Println(p.Next(context.Background()))
	}
	fmt.Printf("%+v\n", p.Stats())
	fmt.Println(p.Close(context.Background()))
	// Output:
	// 2123748187960274944 <nil>
	// 2123748187960274945 <nil>
	// 2123748187960274946 <nil>
	// {Fetches:1 Discarded:0 Waits:1}
	// <nil>
}

// A compact answer of a server, expanded into IDs.
func ExampleRun() {
	batch, err := firn.BatchFromRuns(firn.Run{First: 1000, Step: 8, Count: 3}, firn.Run{First: 5000, Step: 8, Count: 2})
	fmt.Println(batch.Len(), slices.Collect(batch.All()), err)
	// Output: 5 [1000 1008 1016 5000 5008] <nil>
}

// A clock that is an hour behind after a restart: the error shows the problem,
// and when it would end by itself.
func ExampleClockError() {
	now := atNoon()
	g, err := firn.NewGenerator(firn.Default(), firn.Grant{Node: 7, From: now}, &firn.Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	_, _ = g.TryNext()
	now = now.Add(-time.Hour)
	_, err = g.Next(context.Background())
	var clock *firn.ClockError
	fmt.Println(errors.As(err, &clock), clock.Wait)
	fmt.Println(err)
	// Output:
	// true 1h0m0s
	// firn: the clock went back to 2026-11-20T11:00:00Z, 1h0m0s before the last ID (2026-11-20T12:00:00Z): no ID for another 1h0m0s unless the clock is corrected
}

// The statistics of a generator, for metrics.
func ExampleStats() {
	g, err := firn.NewGenerator(firn.Default(), firn.Grant{Node: 7, From: atNoon()}, &firn.Options{Now: atNoon, MaxAhead: time.Second})
	if err != nil {
		panic(err)
	}
	_, _ = g.TryNext()
	_, _, _ = g.Reserve(10_000)
	fmt.Printf("%+v\n", g.Stats())
	// Output: {IDs:10001 Batches:1 Waits:0 TotalWait:0s Lead:2ms}
}
