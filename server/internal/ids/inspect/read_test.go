package inspect

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
)

// TestFirstOfLayout reads IDs as generators of each layout make them, and wants
// the right reading first, with the right parts.
func TestFirstOfLayout(t *testing.T) {
	for _, tt := range []struct {
		layout    string
		time      string
		node, seq uint64
		format    string
		why       string // part of what is said
	}{
		{"default", "2026-11-20T22:57:00Z", 7, 3, "dec", "the time 2026-11-20T22:57:00.000Z is 3 minutes ago"},
		{"default", "2026-11-20T22:59:59.999Z", 1023, 0, "hex", ""},
		{"default", "2026-05-01T12:00:00Z", 300, 1, "base62", "11 digits of base 62"},
		{"default", "2026-11-20T23:00:30Z", 0, 0, "dec", ""},
		{"hazelcast", "2026-03-01T12:00:00Z", 3, 40, "dec", ""},
		{"hazelcast", "2021-07-04T00:00:01Z", 0, 17, "dec", "5 years ago"},
		{"snowcast", "2025-06-01T00:00:00Z", 3, 2, "dec", "snowcast's epoch and number of nodes are configurable"},
		{"flake-idgen", "2026-10-01T08:00:00.5Z", 9<<5 | 7, 0, "dec", ""},
		{"flake-idgen", "2019-01-01T08:00:00.5Z", 1<<5 | 2, 1, "hex", ""},
		{"lable,cluster=3", "2026-10-10T10:10:10.123Z", 2, 0, "dec", "the mode bit"},
		{"lable,mode=time-sequential,cluster=15", "2026-10-10T10:10:10.123Z", 5, 0, "dec", ""},
		{"twitter", "2023-05-06T07:08:09.123Z", 365, 1, "dec", "3 years ago"},
		{"discord", "2024-02-03T04:05:06.789Z", 5 << 5, 2077, "dec", "2 years ago"},
		{"instagram", "2021-02-03T04:05:06.789Z", 5021, 977, "dec", "5 years ago"},
		{"sonyflake", "2024-11-12T13:14:15.16Z", 0x5f05, 0, "dec", "2 years ago"},
		{"mastodon", "2024-11-12T13:14:15.161Z", 0, 51234, "dec", "2 years ago"},
		{"js53", "2026-08-08T08:08:08.888Z", 21, 2, "dec", ""},
		{"boundary", "2026-08-08T08:08:08.888Z", 0x109add5e0e8f, 2, "base62", "the node is the MAC address 10:9a:dd:5e:0e:8f"},
		{"boundary", "2012-01-12T22:56:53.776Z", 0x109add5e0e8f, 0, "hex", "32 hexadecimal"},
		{"boundary", "2012-01-12T22:56:53.776Z", 0x109add5e0e8f, 0, "dec", "10:9a:dd:5e:0e:8f"},
		{"uuidv7", "2026-08-08T08:08:08.888Z", 9, 2, "uuid", "version 7"},
		{"uuidv7", "2026-08-08T08:08:08.888Z", 9, 2, "hex", "version 7"},
		{"ulid", "2026-08-08T08:08:08.888Z", 9, 2, "base32", "26 digits of Crockford's base 32"},
		{"ulid", "2026-08-08T08:08:08.888Z", 9, 2, "uuid", "36 characters of a UUID"},
	} {
		l := firn.MustParseLayout(tt.layout)
		at := must.Get(time.Parse(time.RFC3339Nano, tt.time))(t)
		f := must.Get(firn.ParseFormat(tt.format))(t)
		b := compose(t, l, firn.Parts{Time: at, Node: tt.node, Seq: tt.seq})
		r := mustRead(t, textOf(f, b), Options{})
		got := &r.Readings[0]
		if got.Name != tt.layout || !got.Time.Equal(at) || got.Node != tt.node || got.Seq != tt.seq || got.Form != form.Of(f) {
			t.Errorf("Read(%q) = %s at %s node %d seq %d in %s, want %s at %s node %d seq %d in %s", textOf(f, b),
				got.Name, got.Stamp(), got.Node, got.Seq, got.Form, tt.layout, tt.time, tt.node, tt.seq, f)
			for _, x := range r.Readings {
				t.Logf("%.4f %s %s %v", x.Score, x.Name, x.Form, reasons(&x))
			}
			continue
		}
		if f != firn.Hex || !strings.Contains(tt.why, "hexadecimal") {
			if why := strings.Join(reasons(got), "\n"); !strings.Contains(why, tt.why) {
				t.Errorf("Read(%q) says\n%s\nand not %q", textOf(f, b), why, tt.why)
			}
		}
		if !got.Plausible {
			t.Errorf("Read(%q).Readings[0].Plausible = false", textOf(f, b))
		}
	}
}

func textOf(f firn.Format, b []byte) string {
	if len(b) == 16 {
		return f.Text128(firn.ID128(b))
	}
	id, err := firn.Raw.Parse(string(b))
	if err != nil {
		panic(err)
	}
	return f.Text(id)
}

// reasons returns what speaks for and against a reading.
func reasons(r *Reading) []string { return slices.Concat(r.For(), r.Against()) }

// TestFirstPublished reads IDs that the formats' own documents give, with what
// they say about them.
func TestFirstPublished(t *testing.T) {
	for _, tt := range []struct {
		text, name, from, time string
		node, seq              uint64
	}{
		{"1212092628029698048", "twitter", "dec", "2019-12-31T19:26:16.771Z", 327, 0},
		// Discord's documentation.
		{"175928847299117063", "discord", "dec", "2016-04-30T11:18:25.796Z", 32, 7},
		// RFC 9562, appendix A.
		{"C232AB00-9414-11EC-B3C8-9F6BDECED846", "uuidv1", "uuid", "2022-02-22T19:22:22.000000000Z", 0x9f6bdeced846, 0x33c8},
		{"1EC9414C-232A-6B00-B3C8-9F6BDECED846", "uuidv6", "uuid", "2022-02-22T19:22:22.000000000Z", 0x9f6bdeced846, 0x33c8},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "uuidv7", "uuid", "2022-02-22T19:22:22.000Z", 0x6313, 0xcc3},
		// The READMEs of ulid, ksuid and xid, and MongoDB's manual.
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid", "base32", "2016-07-30T23:54:10.259Z", 25798, 3431},
		{"0ujtsYcgvSTl8PAuAdqWYSMnLOv", "ksuid", "ksuid", "2017-10-10T04:00:47.000Z", 0, 0},
		{"9m4e2mr0ui3e8a215n4g", "xid", "xid", "2011-03-22T17:50:19.000Z", 6354054<<16 | 58408, 4271561},
		{"507f1f77bcf86cd799439011", "objectid", "hex", "2012-10-17T21:13:27.000Z", 0xbcf86cd799, 0x439011},
	} {
		r := mustRead(t, tt.text, Options{})
		got := &r.Readings[0]
		if got.Name != tt.name || got.Form.String() != tt.from || got.Stamp() != tt.time || got.Node != tt.node || got.Seq != tt.seq {
			t.Errorf("Read(%q) = %s from %s, %s node %d seq %d, want %s from %s, %s node %d seq %d", tt.text,
				got.Name, got.Form, got.Stamp(), got.Node, got.Seq, tt.name, tt.from, tt.time, tt.node, tt.seq)
		}
	}
}

// TestUUIDs names the versions that hold no time.
func TestUUIDs(t *testing.T) {
	for _, tt := range []struct{ text, name, why string }{
		{"00000000-0000-0000-0000-000000000000", "uuid-nil", "stands for no ID"},
		{"ffffffff-ffff-ffff-ffff-ffffffffffff", "uuid-max", "stands for no ID"},
		{"000003e8-cbb9-21ea-b201-00045a86c8a1", "uuidv2", "DCE"},
		{"5df41881-3aed-3515-88a7-2f4a814cf09e", "uuidv3", "MD5"},
		{"919108f7-52d1-4320-9bac-f847db4148a8", "uuidv4", "122 random bits"},
		{"919108f752d143209bacf847db4148a8", "uuidv4", "122 random bits"},
		{"2ed6657d-e927-568b-95e1-2665a8aea6a2", "uuidv5", "SHA-1"},
		{"2489e9ad-2ee2-8e00-8ec9-32d5f69181c0", "uuidv8", "vendor-specific"},
	} {
		got := mustRead(t, tt.text, Options{}).Readings[0]
		if got.Name != tt.name || got.HasParts || !strings.Contains(strings.Join(reasons(&got), "\n"), tt.why) {
			t.Errorf("Read(%q) = %s, parts %t, %q; want %s without parts, and %q", tt.text, got.Name, got.HasParts, reasons(&got), tt.name, tt.why)
		}
	}
}

// checkResult checks what is true of every result.
func checkResult(t *testing.T, r Result) {
	t.Helper()
	if len(r.Readings) == 0 {
		t.Fatalf("Read(%q) has neither readings nor an error", r.Text)
	}
	sum := 0.0
	for i := range r.Readings {
		x := &r.Readings[i]
		sum += x.Score
		if !(x.Score >= 0 && x.Score <= 1) {
			t.Errorf("Read(%q): the score of %s is %g", r.Text, x.Name, x.Score)
		}
		if len(reasons(x)) == 0 {
			t.Errorf("Read(%q): %s is not mentioned", r.Text, x.Name)
		}
		if want := new(big.Int).SetBytes(x.Bytes); x.Dec() != want.String() || x.Hex() != want.Text(16) && len(x.Hex()) != 2*len(x.Bytes) {
			t.Errorf("Read(%q): %s is %s and %s", r.Text, x.Name, x.Dec(), x.Hex())
		}
		width := 0
		for _, p := range x.Pieces() {
			width += p.Width
		}
		if width != x.Bits() {
			t.Errorf("Read(%q): the pieces of %s have %d bits, want %d", r.Text, x.Name, width, x.Bits())
		}
		checkRecompose(t, r.Text, x)
	}
	if sum += r.Unknown; math.Abs(sum-1) > 1e-6 {
		t.Errorf("Read(%q): the scores add up to %g", r.Text, sum)
	}
	if !slices.IsSortedFunc(r.Readings, func(a, b Reading) int {
		if a.Score > b.Score {
			return -1
		}
		return 1
	}) {
		for i := range r.Readings[1:] {
			if r.Readings[i].Score < r.Readings[i+1].Score && r.Readings[i].Form == r.Readings[i+1].Form {
				t.Errorf("Read(%q): reading %d is likelier than the one before", r.Text, i+1)
			}
		}
	}
}

// checkRecompose puts an ID together again from what was read.
func checkRecompose(t *testing.T, text string, x *Reading) {
	t.Helper()
	if x.Layout.IsZero() || x.Layout.ReadOnly() || x.Layout.RandBits() > 0 {
		return
	}
	if again, err := firn.ParseLayout(x.Name); x.Name != "uuidv6" && (err != nil || again != x.Layout) {
		t.Errorf("Read(%q): the name %s is no text of layout %v: %v", text, x.Name, x.Layout, err)
	}
	b := compose(t, x.Layout, firn.Parts{Time: x.Time, Node: x.Node, Seq: x.Seq})
	if string(b) != string(x.Bytes) {
		t.Errorf("Read(%q): %s composes to %x, want %x", text, x.Name, b, x.Bytes)
	}
}

// TestKnownLayout reads by a layout that is given: nothing is guessed but the
// encoding, and digits are decimal.
func TestKnownLayout(t *testing.T) {
	for _, tt := range []struct{ layout, text, from string }{
		{"default", "1", "dec"},
		{"default", "1234567890123456", "dec"}, // would also be 16 hexadecimal digits
		{"default", "0x1", "hex"},
		{"default", "00000000000000ff", "hex"},
		{"default", "0000000000000012", "hex"}, // decimal has no leading zeros
		{"default", "000000000000012", "dec"},  // and hexadecimal not 15 digits
		{"boundary", "00000134d42d2d43109add5e0e8f0000", "hex"},
		{"boundary", "00000134042020431090005000080000", "hex"},
		{"default", "8fl90WeizA", "base62"},
		{"hazelcast", "9007199254740993", "dec"},
		{"flake-idgen", "18446744073709551615", "dec"},
		{"boundary", "5", "dec"},
		{"boundary", "0x5", "hex"},
		{"boundary", "AboKHPfZvePUStfgB6", "base62"},
		{"boundary", "12345678901234567890123456789012", "dec"},
		{"uuidv7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "uuid"},
		{"ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "base32"},
		{"xid", "9m4e2mr0ui3e8a215n4g", "xid"},
		{"xid", "4d88e15b60f486e428412dc9", "hex"},
		{"objectid", "507f1f77bcf86cd799439011", "hex"},
		{"ksuid", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "ksuid"},
	} {
		r := mustRead(t, tt.text, Options{Layout: firn.MustParseLayout(tt.layout)})
		got := r.Readings[0]
		if got.Name != tt.layout || got.Form.String() != tt.from {
			t.Errorf("Read(%q) by layout %s = %s from %s, want from %s", tt.text, tt.layout, got.Name, got.Form, tt.from)
		}
		checkResult(t, r)
	}
}

func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ layout, from, text, want string }{
		{"", "auto", "", "the text is empty"},
		{"", "auto", "foo", "it fits no known encoding"},
		{"", "auto", "1,179,183,313,482,456,071", "it has separators between its digits: remove them"},
		{"", "auto", "1\u202f179\u202f183\u202f313", "it has separators between its digits: remove them"},
		{"", "auto", "-5", "it has a sign; as an unsigned number it is 18446744073709551611"},
		{"", "auto", "-99999999999999999999", "it has a sign"},
		{"", "auto", "abc", "hexadecimal without 0x has 16, 24, 32 or 40 digits, not 3"},
		{"", "dec", "12a", "not a decimal digit"},
		{"", "xid", "9m4e2mr0ui3e8a215n4h", "not a valid xid, which has 20 digits of 0-9a-v and ends with 0 or g"},
		{"", "ksuid", "0ujtsYcgvSTl8PAuAdqWYSMnLO", "not a valid KSUID"},
		{"default", "auto", "18446744073709551615", "not an ID of layout default: bit 63 must be zero"},
		{"default", "auto", "31359464925324684491273709518848", "is not an ID of 64 bits: as a decimal number it exceeds 64 bits"},
		{"lable", "auto", "3", "the cluster (bits 3..0) is 3, not 0"},
		{"default", "xid", "9m4e2mr0ui3e8a215n4g", "has 96 bits, not 64"},
		{"uuidv7", "auto", "919108f7-52d1-4320-9bac-f847db4148a8", "the version (bits 79..76) is 4, not 7"},
		{"ksuid", "dec", "5", "not an ID of 160 bits in dec"},
	} {
		var o Options
		if tt.layout != "" {
			o.Layout = firn.MustParseLayout(tt.layout)
		}
		var err error
		if o.From, err = form.ParseInput(tt.from); err != nil {
			t.Fatal(err)
		}
		o.Now = testNow
		r, err := Read(tt.text, o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(r.Readings) != 0 {
			t.Errorf("Read(%q) by layout %q from %s = %v, want an error with %q", tt.text, tt.layout, tt.from, err, tt.want)
		}
	}
}

// TestNoKnownLayout reads texts of valid encodings that no known layout has made,
// or only a word that looks like an ID.
func TestNoKnownLayout(t *testing.T) {
	for _, tt := range []struct{ text, from, note string }{
		{"0000000000a", "base36", ""},
		{"39kHQVbzU2HGjKozI65P4b", "base62", ""}, // a KSUID without padding
		{"tz4a98xxat96iws9zmbrgj3a", "base36", ""},
		{"4sTLzBcWrQ9pYvHdK2mXaN", "base58", ""},
		{"CTFlHsmpEVW", "base62", ""},
		{"dQw4w9WgXcQ", "base58", ""},
		{"Iphone15Pro", "base62", ""},
		{"1795817000000", "dec", "it may be a Unix time in milliseconds: 2026-11-27T22:03:20.000Z"},
		{"information", "base36", ""},
		{"12345678901", "dec", ""},
		{"1593572310593806338n", "base62", "the suffix n of a programming language: remove the n"},
		{"1593572310593806338L", "base62", "remove the L"},
		{"1593572310593806338ull", "base36", "remove the ull"},
		{"1593572310593806338LL", "base62", "remove the LL"},
	} {
		r := mustRead(t, tt.text, Options{})
		if r.Known() || !strings.Contains(r.Other, tt.note) || tt.note == "" && r.Other != "" {
			t.Errorf("Read(%q) is %s, known %t, %q; want no known layout, and %q", tt.text, r.Readings[0].Name, r.Known(), r.Other, tt.note)
		}
		if got := r.Readings[0].Form.String(); tt.from == "dec" && got != "dec" {
			t.Errorf("Read(%q) as %s, want dec", tt.text, got)
		}
		checkResult(t, r)
	}
	// Words of one case can be base 36, but are not likely to be IDs.
	for _, text := range []string{"IPHONE15PRO", "newsletter1", "ab12cd34ef5"} {
		for _, x := range mustRead(t, text, Options{}).Readings {
			if x.Likelihood() == Likely {
				t.Errorf("Read(%q): %s in %s is likely", text, x.Name, x.Form)
			}
		}
	}
}

// TestRounded tells IDs that went through a JavaScript number.
func TestRounded(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"7130316800004391000", true},  // of 7130316800004390912
		{"7130316800004390912", false}, // exact, and not the shortest
		{"1212092628029698000", true},
		{"1212092628029698048", false},
		{"9007199254740000", false},   // a JavaScript number holds it
		{"249659538179887100", true},  // ioredis' answer to …887104 and …887105
		{"249659538179887105", false}, // two zeros less, and right
		{"117890598836449280", false}, // a double itself: sequence 0
		{"117890598836449281", false},
	} {
		got := false
		for _, reason := range reasons(&mustRead(t, tt.text, Options{}).Readings[0]) {
			got = got || strings.Contains(reason, "it looks rounded")
		}
		if got != tt.want {
			t.Errorf("Read(%q) says that it was rounded: %t, want %t", tt.text, got, tt.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, tt := range []struct {
		seconds float64
		want    string
	}{
		{0, "0 ms"}, {0.057, "57 ms"}, {1, "1 second"}, {59.9, "59 seconds"}, {119, "119 seconds"}, {180, "3 minutes"},
		{2 * 3600, "2 hours"}, {47 * 3600, "47 hours"}, {3 * 86400, "3 days"}, {100 * 86400, "3 months"},
		{800 * 86400, "2 years"}, {41.5 * Year, "41 years"}, {5845 * Year, "5845 years"}, {584.9e6 * Year, "585 million years"},
	} {
		if got := Span(tt.seconds); got != tt.want {
			t.Errorf("Span(%g) = %q, want %q", tt.seconds, got, tt.want)
		}
	}
}

// FuzzRead reads whatever text there is, with and without a layout.
func FuzzRead(f *testing.F) {
	for i, text := range texts() {
		f.Add(text, uint8(0), uint8(0))
		f.Add(text, uint8(i), uint8(0))
		f.Add(text, uint8(0), uint8(i))
	}
	f.Add("-5", uint8(1), uint8(1))
	f.Add("0000000000000012", uint8(4), uint8(0))
	f.Add("00000000000000000000000000000012", uint8(1), uint8(0))
	f.Add("0x12345678901234", uint8(1), uint8(0))
	names := []string{"auto", "dec", "hex", "base32", "base36", "base58", "base62", "bin", "uuid", "xid", "ksuid", "objectid", "base7", "flake58"}
	var layouts []firn.Layout
	for p := range firn.Presets() {
		layouts = append(layouts, p.Layout)
	}
	f.Fuzz(func(t *testing.T, text string, layout, from uint8) {
		o := Options{Now: testNow}
		if i := int(layout) % (len(layouts) + 1); i > 0 {
			o.Layout = layouts[i-1]
		}
		var err error
		if o.From, err = form.ParseInput(names[int(from)%len(names)]); err != nil {
			t.Fatal(err)
		}
		r, err := Read(text, o)
		if err != nil {
			if len(r.Readings) > 0 || err.Error() == "" {
				t.Fatalf("Read(%q) = %v with %d readings", text, err, len(r.Readings))
			}
		} else {
			checkResult(t, r)
			checkJSON(t, r)
		}
	})
}

// TestTieOfFormats has IDs whose random bits are by chance those of another
// format: the way they are written decides.
func TestTieOfFormats(t *testing.T) {
	id := compose(t, firn.MustParseLayout("ulid"), firn.Parts{Time: testNow, Node: 9, Seq: 2})
	id[6], id[8] = id[6]&15|0x70, id[8]&63|0x80
	for _, tt := range []struct {
		f    firn.Format
		want string
	}{{firn.Base32, "ulid"}, {firn.UUID, "uuidv7"}, {firn.Hex, "uuidv7"}} {
		if got := mustRead(t, textOf(tt.f, id), Options{}).Readings[0]; got.Name != tt.want || got.Likelihood() != Likely {
			t.Errorf("Read(%q) = %s, %v; want %s, likely", textOf(tt.f, id), got.Name, got.Likelihood(), tt.want)
		}
	}
}
