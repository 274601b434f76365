package firn_test

import (
	"testing"

	"github.com/firnid/firn"
)

// The IDs of the benchmarks: 63 bits, like those of the default layout, and 128
// bits, like Boundary's.
var (
	encBenchID   = firn.ID(0x62f3f95a00430001)
	encBenchWide = firn.ID128FromUint64s(0x18bcfe56800, 0xffffffffffff8001)
)

var encBenchNames = []string{
	"dec", "dec-fixed", "hex", "hex-short", "bin", "base32", "base32-short", "base36", "base58", "base62", "base62-fixed", "flake32", "base7", "uuid", "raw",
}

func encBenchFormats(b *testing.B, bits int, run func(*testing.B, firn.Format)) {
	for _, name := range encBenchNames {
		f, err := firn.ParseFormat(name)
		if err != nil {
			b.Fatal(err)
		}
		if f.Fits(bits) == nil {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				run(b, f)
			})
		}
	}
}

func BenchmarkFormatAppend(b *testing.B) {
	buf := make([]byte, 0, 128)
	encBenchFormats(b, 64, func(b *testing.B, f firn.Format) {
		for b.Loop() {
			buf = f.Append(buf[:0], encBenchID)
		}
	})
}

func BenchmarkFormatAppend128(b *testing.B) {
	buf := make([]byte, 0, 128)
	encBenchFormats(b, 128, func(b *testing.B, f firn.Format) {
		for b.Loop() {
			buf = f.Append128(buf[:0], encBenchWide)
		}
	})
}

func BenchmarkFormatParse(b *testing.B) {
	encBenchFormats(b, 64, func(b *testing.B, f firn.Format) {
		text := string(f.Append(nil, encBenchID))
		for b.Loop() {
			if id, err := f.Parse(text); err != nil || id != encBenchID {
				b.Fatal(id, err)
			}
		}
	})
}

func BenchmarkFormatParse128(b *testing.B) {
	encBenchFormats(b, 128, func(b *testing.B, f firn.Format) {
		text := string(f.Append128(nil, encBenchWide))
		for b.Loop() {
			if id, err := f.Parse128(text); err != nil || id != encBenchWide {
				b.Fatal(id, err)
			}
		}
	})
}

func BenchmarkID(b *testing.B) {
	text, quoted := encBenchID.String(), []byte(`"`+encBenchID.String()+`"`)
	id := encBenchID
	b.Run("ParseID", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			id, _ = firn.ParseID(text)
		}
	})
	b.Run("String", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = id.String()
		}
	})
	b.Run("UnmarshalJSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := id.UnmarshalJSON(quoted); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkID128(b *testing.B) {
	text, quoted := encBenchWide.String(), []byte(`"`+encBenchWide.String()+`"`)
	id := encBenchWide
	b.Run("ParseID128", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			id, _ = firn.ParseID128(text)
		}
	})
	b.Run("String", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = id.String()
		}
	})
	b.Run("UnmarshalJSON", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := id.UnmarshalJSON(quoted); err != nil {
				b.Fatal(err)
			}
		}
	})
}
