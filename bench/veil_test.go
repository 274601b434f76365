package bench

import (
	"testing"

	hashids "github.com/speps/go-hashids/v2"
	sqids "github.com/sqids/sqids-go"

	"github.com/firnid/firn"
	"github.com/firnid/firn/veil"
)

// BenchmarkVeil measures opaque text for a 63-bit ID beside Sqids and Hashids.
// Those encode with a shuffled alphabet, which protects nothing; veiled IDs are
// encrypted.
func BenchmarkVeil(b *testing.B) {
	const id = firn.ID(117383499776000003)
	text := must(veil.Keys{1: make([]byte, 32)}.Text("orders", firn.Default()))
	sq := must(sqids.New())
	hash := must(hashids.New())
	buf := make([]byte, 0, 64)
	veiled, sqid, hashid := string(must(text.Append(nil, id))), must(sq.Encode([]uint64{uint64(id)})), must(hash.EncodeInt64([]int64{int64(id)}))

	write := each(func() { buf = must(text.Append(buf[:0], id)) })
	writeSqids := each(func() { must(sq.Encode([]uint64{uint64(id)})) })
	writeHashids := each(func() { must(hash.EncodeInt64([]int64{int64(id)})) })
	read := each(func() { must(text.Parse(veiled)) })
	readSqids := each(func() { sq.Decode(sqid) })
	readHashids := each(func() { must(hash.DecodeInt64WithError(hashid)) })
	for _, row := range []struct {
		name            string
		subject, beside loop
		unit, text      string
	}{
		{"write/veil", write, add(), "x-add", veiled},
		{"write/sqids", writeSqids, write, "x-veil", sqid},
		{"write/hashids", writeHashids, write, "x-veil", hashid},
		{"read/veil", read, add(), "x-add", veiled},
		{"read/sqids", readSqids, read, "x-veil", sqid},
		{"read/hashids", readHashids, read, "x-veil", hashid},
	} {
		b.Run(row.name, func(b *testing.B) {
			pair(b, row.subject, row.beside, row.unit, slice)
			b.ReportMetric(float64(len(row.text)), "characters")
		})
	}
}
