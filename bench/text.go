package main

import (
	"strconv"

	bwmarrin "github.com/bwmarrin/snowflake"
	gofrs "github.com/gofrs/uuid/v5"
	google "github.com/google/uuid"
	"github.com/muyo/sno"
	"github.com/oklog/ulid/v2"
	"github.com/rs/xid"
	"github.com/segmentio/ksuid"
	sonyflake2 "github.com/sony/sonyflake/v2"
	"github.com/speps/go-hashids/v2"
	"github.com/sqids/sqids-go"

	"github.com/firnid/firn"
)

// The ID of all texts has 63 bits, like those of the default layout.
const textID = firn.ID(0x62f3f95a00430001)

func firnAppend(name string, f firn.Format) subject {
	buf := make([]byte, 0, 64)
	return subject{name: name, run: func(n int) {
		for i := range n {
			buf = f.Append(buf[:0], textID+firn.ID(i))
		}
		sink.Store(uint64(len(buf)))
	}}
}

func firnParse(name string, f firn.Format) subject {
	text := string(f.Append(nil, textID))
	return subject{name: name, run: func(n int) {
		var x firn.ID
		for range n {
			id, err := f.Parse(text)
			failed(err)
			x ^= id
		}
		sink.Store(uint64(x))
	}}
}

// texts makes a subject of a function that formats or parses an ID.
func texts(name string, f func(i int) int) subject {
	return subject{name: name, run: func(n int) {
		x := 0
		for i := range n {
			x += f(i)
		}
		sink.Store(uint64(x))
	}}
}

// text measures formatting and parsing IDs. Peers whose function returns a
// string are measured that way; their cost includes a call through a variable,
// about 2 ns.
func (r *run) text() {
	formats := []struct {
		name string
		f    firn.Format
	}{{"firn-base32", firn.Base32}, {"firn-base62", firn.Base62}, {"firn-base58", firn.Base58}, {"firn-dec", firn.Decimal}, {"firn-hex", firn.Hex}}
	base := atomicAdd()
	bw := bwmarrin.ID(textID)
	buf := make([]byte, 0, 64)
	var xbuf [20]byte
	for _, f := range formats {
		r.against("append/", firnAppend(f.name, f.f), base, true)
	}
	ids := struct {
		sno    sno.ID
		xid    xid.ID
		ksuid  ksuid.KSUID
		ulid   ulid.ULID
		google google.UUID
		gofrs  gofrs.UUID
	}{must(sno.NewGenerator(nil, nil)).New(0), xid.New(), ksuid.New(), ulid.Make(), must(google.NewV7()), must(gofrs.NewV7())}
	sq, hash := must(sqids.New()), must(hashids.NewWithData(hashids.NewData()))
	for _, s := range []subject{
		texts("strconv-dec", func(int) int { buf = strconv.AppendUint(buf[:0], uint64(textID), 10); return len(buf) }),
		texts("bwmarrin-dec", func(int) int { return len(bw.String()) }),
		texts("bwmarrin-base32", func(int) int { return len(bw.Base32()) }),
		texts("bwmarrin-base36", func(int) int { return len(bw.Base36()) }),
		texts("bwmarrin-base58", func(int) int { return len(bw.Base58()) }),
		texts("sno", func(int) int { return len(ids.sno.String()) }),
		texts("xid", func(int) int { return len(ids.xid.String()) }),
		texts("xid-encode", func(int) int { return len(ids.xid.Encode(xbuf[:])) }),
		texts("ksuid", func(int) int { return len(ids.ksuid.String()) }),
		texts("ulid", func(int) int { return len(ids.ulid.String()) }),
		texts("google", func(int) int { return len(ids.google.String()) }),
		texts("gofrs", func(int) int { return len(ids.gofrs.String()) }),
		texts("sqids", func(int) int { return len(must(sq.Encode([]uint64{uint64(textID)}))) }),
		texts("hashids", func(int) int { return len(must(hash.EncodeInt64([]int64{int64(textID)}))) }),
	} {
		r.against("append/", s, base, false)
	}

	for _, f := range formats {
		r.against("parse/", firnParse(f.name, f.f), base, true)
	}
	dec, b32, b58 := bw.String(), []byte(bw.Base32()), []byte(bw.Base58())
	snoText, xidText, ksuidText, ulidText := ids.sno.String(), ids.xid.String(), ids.ksuid.String(), ids.ulid.String()
	googleText, gofrsText := ids.google.String(), ids.gofrs.String()
	sqText, hashText := must(sq.Encode([]uint64{uint64(textID)})), must(hash.EncodeInt64([]int64{int64(textID)}))
	for _, s := range []subject{
		texts("strconv-dec", func(int) int { return int(must(strconv.ParseUint(dec, 10, 64))) }),
		texts("bwmarrin-dec", func(int) int { return int(must(bwmarrin.ParseString(dec))) }),
		texts("bwmarrin-base32", func(int) int { return int(must(bwmarrin.ParseBase32(b32))) }),
		texts("bwmarrin-base58", func(int) int { return int(must(bwmarrin.ParseBase58(b58))) }),
		texts("sno", func(int) int { return int(must(sno.FromEncodedString(snoText))[0]) }),
		texts("xid", func(int) int { return int(must(xid.FromString(xidText))[0]) }),
		texts("ksuid", func(int) int { return int(must(ksuid.Parse(ksuidText))[0]) }),
		texts("ulid-strict", func(int) int { return int(must(ulid.ParseStrict(ulidText))[0]) }),
		texts("google", func(int) int { return int(must(google.Parse(googleText))[0]) }),
		texts("gofrs", func(int) int { return int(must(gofrs.FromString(gofrsText))[0]) }),
		texts("sqids", func(int) int { return int(sq.Decode(sqText)[0]) }),
		texts("hashids", func(int) int { return int(must(hash.DecodeInt64WithError(hashText))[0]) }),
	} {
		r.against("parse/", s, base, false)
	}

	layout := firn.MustParseLayout(twitterShape)
	sony := must(sonyflake2.New(sonyflake2.Settings{MachineID: func() (int, error) { return 1, nil }}))
	sonyID := must(sony.NextID())
	parts := must(layout.Decompose(textID))
	for _, s := range []subject{
		texts("firn-decompose", func(int) int { return int(must(layout.Decompose(textID)).Seq) }),
		texts("firn-compose", func(int) int { return int(must(layout.Compose(parts))) }),
		texts("bwmarrin-decompose", func(int) int { return int(bw.Time() ^ bw.Node() ^ bw.Step()) }),
		texts("sonyflake-v2-decompose", func(int) int { return len(sony.Decompose(sonyID)) }),
	} {
		r.against("parts/", s, base, s.name == "firn-decompose" || s.name == "firn-compose")
	}
}
