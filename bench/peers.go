package main

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/edwingeng/wuid/callback/wuid"
	godruoyi "github.com/godruoyi/go-snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	influx "github.com/influxdata/influxdb/pkg/snowflake"
	nanoid "github.com/matoous/go-nanoid/v2"
	"github.com/muyo/sno"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	sonyflake1 "github.com/sony/sonyflake"
	sonyflake2 "github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
	"go.jetify.com/typeid"
)

// Peers, each with a loop of its own. If the shape of the ID is configurable,
// it is 41 or more bits of milliseconds, 10 of node and 12 of sequence; -wide
// has all free bits in the sequence, so that the code is measured and not the
// format.

const (
	cap12      = "244 ns, 4096/ms"
	capSony    = "39 us, 256/10 ms"
	capYitter  = "17 us, 59/ms"
	capXID     = "59.6 ns, 2^24/s; it repeats beyond"
	capSno     = "61 ns, 65536/4 ms"
	noBound    = "none: it runs ahead of the clock"
	longRest   = 2200 * time.Millisecond // yitter runs 2 s ahead
	perSecond  = 4096 * 1000
	perSecSony = 25600
)

func must[T any](x T, err error) T {
	failed(err)
	return x
}

func peerBwmarrin() subject {
	g := must(bwmarrin.NewNode(1))
	return subject{name: "bwmarrin", waits: true, bound: cap12, cap: perSecond, run: func(n int) {
		var x bwmarrin.ID
		for range n {
			x ^= g.Generate()
		}
		sink.Store(uint64(x))
	}}
}

// peerBwmarrinWide has 22 bits of sequence. The widths are variables of the
// package, which a node copies, so they are restored afterwards.
func peerBwmarrinWide() subject {
	node, step := bwmarrin.NodeBits, bwmarrin.StepBits
	bwmarrin.NodeBits, bwmarrin.StepBits = 0, 22
	g := must(bwmarrin.NewNode(0))
	bwmarrin.NodeBits, bwmarrin.StepBits = node, step
	must(bwmarrin.NewNode(1)) // computes everything that depends on the widths
	return subject{name: "bwmarrin-wide", run: func(n int) {
		var x bwmarrin.ID
		for range n {
			x ^= g.Generate()
		}
		sink.Store(uint64(x))
	}}
}

func peerSonyflake1() subject {
	g := must(sonyflake1.New(sonyflake1.Settings{MachineID: func() (uint16, error) { return 1, nil }}))
	return subject{name: "sonyflake-v1", waits: true, bound: capSony, cap: perSecSony, run: func(n int) {
		var x uint64
		for range n {
			id, err := g.NextID()
			failed(err)
			x ^= id
		}
		sink.Store(x)
	}}
}

func peerSonyflake2() subject {
	g := must(sonyflake2.New(sonyflake2.Settings{MachineID: func() (int, error) { return 1, nil }}))
	return subject{name: "sonyflake-v2", waits: true, bound: capSony, cap: perSecSony, run: func(n int) {
		var x int64
		for range n {
			id, err := g.NextID()
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

func peerSonyflake2ms() subject {
	g := must(sonyflake2.New(sonyflake2.Settings{
		TimeUnit: time.Millisecond, BitsSequence: 12, BitsMachineID: 10,
		MachineID: func() (int, error) { return 1, nil },
	}))
	return subject{name: "sonyflake-v2-1ms", waits: true, bound: cap12, cap: perSecond, run: func(n int) {
		var x int64
		for range n {
			id, err := g.NextID()
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

// peerYitter has this many bits of sequence; its default is 6. The first five
// numbers of a tick are reserved.
func peerYitter(name string, seqBits byte, bound string) subject {
	o := idgen.NewIdGeneratorOptions(1)
	o.SeqBitLength = seqBits
	g := idgen.NewDefaultIdGenerator(o)
	return subject{name: name, waits: true, bound: bound, rest: longRest, cap: float64(int(1)<<seqBits-5) * 1000, run: func(n int) {
		var x int64
		for range n {
			x ^= g.NewLong()
		}
		sink.Store(uint64(x))
	}}
}

func peerGodruoyi() subject {
	return subject{name: "godruoyi", waits: true, bound: cap12, cap: 4095 * 1000, run: func(n int) {
		var x uint64
		for range n {
			id, err := godruoyi.NextID()
			failed(err)
			x ^= id
		}
		sink.Store(x)
	}}
}

func peerInflux() subject {
	g := influx.New(1)
	return subject{name: "influx", bound: "244 ns, 4096/ms, but it runs ahead of the clock", cap: perSecond, run: func(n int) {
		var x uint64
		for range n {
			x ^= g.Next()
		}
		sink.Store(x)
	}}
}

// peerWUID has no time in it: the callback provides the upper 28 bits. It
// writes a message to stderr.
func peerWUID() subject {
	g := wuid.NewWUID("bench", nil)
	var lease atomic.Int64
	failed(g.LoadH28WithCallback(func() (int64, func(), error) { return lease.Add(1), nil, nil }))
	return subject{name: "wuid", bound: "2^36 IDs, without a time", run: func(n int) {
		var x int64
		for range n {
			x ^= g.Next()
		}
		sink.Store(uint64(x))
	}}
}

func peerSno() subject {
	g := must(sno.NewGenerator(nil, nil))
	return subject{name: "sno", bound: capSno, cap: 65536 * 250, run: func(n int) {
		var x sno.ID
		for range n {
			x = g.New(0)
		}
		sink.Store(uint64(x[9]))
	}}
}

func peerXID() subject {
	return subject{name: "xid", bound: capXID, cap: 1 << 24, run: func(n int) {
		var x xid.ID
		for range n {
			x = xid.New()
		}
		sink.Store(uint64(x[11]))
	}}
}

func peerULID() subject {
	return subject{name: "ulid", run: func(n int) {
		var x ulid.ULID
		for range n {
			x = ulid.Make()
		}
		sink.Store(uint64(x[15]))
	}}
}

func peerKSUID() subject {
	return subject{name: "ksuid", run: func(n int) {
		var x ksuid.KSUID
		for range n {
			x = ksuid.New()
		}
		sink.Store(uint64(x[19]))
	}}
}

func peerGoogle() subject {
	return subject{name: "google", bound: noBound, run: func(n int) {
		var x google.UUID
		for range n {
			x = must(google.NewV7())
		}
		sink.Store(uint64(x[15]))
	}}
}

// peerGoogleReader gives google/uuid the cheapest possible source of random
// bits.
func peerGoogleReader() subject {
	return subject{name: "google-chacha8", bound: noBound, run: func(n int) {
		var x google.UUID
		for range n {
			x = must(google.NewV7FromReader(chacha8{}))
		}
		sink.Store(uint64(x[15]))
	}}
}

func peerGofrs() subject {
	return subject{name: "gofrs", bound: noBound, run: func(n int) {
		var x gofrs.UUID
		for range n {
			x = must(gofrs.NewV7())
		}
		sink.Store(uint64(x[15]))
	}}
}

func peerGofrsReader() subject {
	g := gofrs.NewGenWithOptions(gofrs.WithRandomReader(chacha8{}))
	return subject{name: "gofrs-chacha8", bound: noBound, run: func(n int) {
		var x gofrs.UUID
		for range n {
			x = must(g.NewV7())
		}
		sink.Store(uint64(x[15]))
	}}
}

func peerTypeID() subject {
	return subject{name: "typeid", run: func(n int) {
		for range n {
			x := must(typeid.WithPrefix("user"))
			sink.Store(uint64(len(x.Suffix())))
		}
	}}
}

func peerNanoID() subject {
	return subject{name: "nanoid", bound: "random, no order", run: func(n int) {
		for range n {
			sink.Store(uint64(len(must(nanoid.New()))))
		}
	}}
}

// chacha8 returns the random numbers of the runtime's generator for each
// thread.
type chacha8 struct{}

var _ io.Reader = chacha8{}

func (chacha8) Read(p []byte) (int, error) {
	var b [8]byte
	for i := 0; i < len(p); i += len(b) {
		binary.LittleEndian.PutUint64(b[:], rand.Uint64())
		copy(p[i:], b[:])
	}
	return len(p), nil
}

// peers returns constructors, so that each generator is fresh when it is
// measured.
func peers() []func() subject {
	return []func() subject{
		peerBwmarrin, peerBwmarrinWide, peerSonyflake1, peerSonyflake2, peerSonyflake2ms,
		func() subject {
			return peerYitter("yitter", 6, capYitter+", runs 2 s ahead and then stops for as long")
		},
		func() subject {
			return peerYitter("yitter-12", 12, cap12+", runs 2 s ahead and then stops for as long")
		},
		peerGodruoyi, peerInflux, peerWUID, peerSno, peerXID, peerULID, peerKSUID,
		peerGoogle, peerGoogleReader, peerGofrs, peerGofrsReader, peerTypeID, peerNanoID,
	}
}
