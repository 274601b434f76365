package veil

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// A vector is one that docs/veil.md promises. Numbers are decimal; IDs of 122
// bits are UUIDs.
type vector struct {
	Bits      int    `json:"bits"`
	Key       string `json:"key"`
	Number    int    `json:"number"`
	Sequencer string `json:"sequencer"`
	ID        string `json:"id"`
	Veiled    string `json:"veiled"`
	Text      string `json:"text"`
}

var layouts = map[int]firn.Layout{
	53: firn.MustParseLayout("js53"), 63: firn.Default(), 64: firn.MustParseLayout("snowcast"), 122: firn.MustParseLayout("uuidv7"),
}

// codecOf returns the Codec of the contents of a file of keys.
func codecOf(t *testing.T, keys, sequencer string, l firn.Layout) *Codec {
	t.Helper()
	return must.Get(must.Get(ParseKeys(keys))(t).Codec(sequencer, l))(t)
}

// veiledOf veils the ID of a vector, and checks that it can be unveiled.
func veiledOf(t *testing.T, v vector) (number, text string) {
	key := must.Get(hex.DecodeString(v.Key))(t)
	c := must.Get(New(key, v.Sequencer, layouts[v.Bits]))(t)
	x := codecOf(t, fmt.Sprintf("%d:%s", v.Number, v.Key), v.Sequencer, layouts[v.Bits])
	if v.Bits == 122 {
		id, err := firn.ParseID128(v.ID)
		veiled, veilErr := c.Veil128(id)
		back, backErr := c.Unveil128(veiled)
		text, textErr := x.Text128(id)
		parsed, parseErr := x.Parse128(text)
		if err := errors.Join(err, veilErr, backErr, textErr, parseErr); err != nil || back != id || parsed != id {
			t.Errorf("%+v: unveiled %v and %v: %v", v, back, parsed, err)
		}
		return veiled.String(), text
	}
	id, err := firn.ParseID(v.ID)
	veiled, veilErr := c.Veil(id)
	back, backErr := c.Unveil(veiled)
	text, textErr := x.Text(id)
	parsed, parseErr := x.Parse(text)
	if err := errors.Join(err, veilErr, backErr, textErr, parseErr); err != nil || back != id || parsed != id {
		t.Errorf("%+v: unveiled %v and %v: %v", v, back, parsed, err)
	}
	return veiled.String(), text
}

// The vectors are frozen: other implementations pass them.
func TestVectors(t *testing.T) {
	const file = "testdata/vectors.json"
	text := must.Get(os.ReadFile(file))(t)
	var all []vector
	if err := json.Unmarshal(text, &all); err != nil || len(all) != 200 {
		t.Fatalf("%d vectors, want 200: %v", len(all), err)
	}
	walked := 0
	for _, v := range all {
		number, text := veiledOf(t, v)
		if number != v.Veiled || text != v.Text {
			t.Errorf("%+v: veiled as %s and %s", v, number, text)
		}
		key, _ := hex.DecodeString(v.Key)
		c, _ := New(key, v.Sequencer, layouts[v.Bits])
		if id, err := firn.ParseID(v.ID); err == nil && v.Bits != 122 {
			if a, b := c.ff1.encrypt(halves(0, uint64(id), v.Bits)); a|b == 0 {
				walked++
			}
		}
	}
	if walked != 3 {
		t.Errorf("%d vectors of numbers step over 0, want 3", walked)
	}
}

// Which layouts can be veiled, and in how many bits.
func TestDomain(t *testing.T) {
	for p := range firn.Presets() {
		want := map[string]int{
			"js53": 53, "default": 63, "hazelcast": 63, "twitter": 63, "sonyflake": 63, "uuidv7": 122,
			"snowcast": 64, "flake-idgen": 64, "lable": 64, "discord": 64, "instagram": 64, "mastodon": 64,
		}[p.Name]
		got, err := veiledBits(p.Layout)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("veiledBits(%s) = %d, %v, want %d", p.Name, got, err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	key := make([]byte, 32)
	c := must.Get(New(key, "orders", firn.Default()))(t)
	long := must.Get(New(key, "orders", layouts[122]))(t)
	zeros := strings.Repeat("0", 64)
	keys := zeros + "\n3:" + zeros
	x, wide := codecOf(t, keys, "orders", firn.Default()), codecOf(t, keys, "orders", layouts[122])
	one := func(_ any, err error) error { return err }
	v7 := firn.MustParseLayout("uuidv7")
	id := must.Get(v7.Compose128(firn.Parts{Time: time.UnixMilli(1795212007226)}))(t)
	for i, row := range []struct {
		err  error
		want string
	}{
		{one(New(key[:15], "orders", firn.Default())), "the key has 15 bytes: use 16, 24 or 32"},
		{one(New(key, "", firn.Default())), "name of the sequencer is empty"},
		{one(New(key, "orders", firn.MustParseLayout("ulid"))), "must have 64 bits, or be uuidv7"},
		{one(New(key, "orders", firn.Layout{})), "cannot be veiled"},
		{one(c.Veil(0)), "ID 0 is outside of 1 to 9223372036854775807"},
		{one(c.Veil(1 << 63)), "ID 9223372036854775808 is outside"},
		{one(c.Unveil(0)), "veiled ID 0 is outside"},
		{one(c.Veil128(id)), "has 128 bits, but IDs of this layout have 64"},
		{one(long.Veil(1)), "has 64 bits, but IDs of this layout have 128"},
		{one(long.Unveil128(id)), "is not a UUID of version 8"},
		{one(long.Veil128(firn.ID128{1})), "is not a UUID of version 7"},
		{one(long.Veil128(firn.ID128{6: 0x70, 8: 0x80})), "no bits besides version and variant"},
		{one(x.Parse("order_03887nf7a8003")), "it is a plain ID; a veiled one begins with v, the number of a key and _"},
		{one(x.Parse("03887nf7a8003")), "it is a plain ID"},
		{one(x.Parse("117383499776000003")), "it is a plain ID"},
		{one(x.Parse("tea")), "does not begin with v"},
		{one(x.Parse("v03_03887nf7a8003")), "does not begin with v"},
		{one(x.Parse("v2_03887nf7a8003")), "veiled with key 2, and this key is not known"},
		{one(x.Parse("v3_03887Nf7a8003")), `"v3_03887Nf7a8003": 'N' at offset 8 is in upper case; it may mean 'n'`},
		{one(x.Parse("v3_g3887nf7a8003")), "more than 'f'"},
		{one(x.Parse("v3_f3887nf7a8003")), "is outside of 1 to 9223372036854775807"},
		{one(x.Parse("v3_00000000000000000000000001")), "has 128 bits after the prefix, not 64"},
		{one(wide.Parse128("v3_0000000000001")), "has 64 bits after the prefix, not 128"},
		{one(wide.Parse128("v3_00000000000000000000000001")), "is not a UUID of version 8"},
		{one(x.Text(0)), "ID 0 is outside"},
		{one(wide.Text128(firn.ID128{1})), "version 7"},
		{one(Keys{}.Codec("orders", firn.Default())), "no key given"},
	} {
		if row.err == nil || !strings.Contains(row.err.Error(), row.want) {
			t.Errorf("%d: %v, want an error with %q", i, row.err, row.want)
		}
		if parse, ok := errors.AsType[*firn.ParseError](row.err); ok && parse.What != "veiled ID" {
			t.Errorf("%d: %v, want an error about a veiled ID", i, row.err)
		}
	}
	if got, _ := x.Text(1); !strings.HasPrefix(got, "v3_") {
		t.Errorf("new text %s, want one with key 3", got)
	}
}

func TestParseKeys(t *testing.T) {
	a, b := strings.Repeat("0a", 16), strings.Repeat("F1", 32)
	for text, want := range map[string]map[int][]byte{
		a:                                  {1: bytes.Repeat([]byte{10}, 16)},
		b + "\n":                           {1: bytes.Repeat([]byte{0xf1}, 32)},
		"# keys\n\n1:" + a + "\r\n2: " + b: {1: bytes.Repeat([]byte{10}, 16), 2: bytes.Repeat([]byte{0xf1}, 32)},
	} {
		if got, err := ParseKeys(text); err != nil || !maps.EqualFunc(got.byNumber(), want, bytes.Equal) {
			t.Errorf("ParseKeys(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                      "no key found",
		"# only\n":              "no key found",
		"secret":                "line 1: the key is not 32, 48 or 64 hexadecimal digits",
		strings.Repeat("a", 63): "line 1: the key is not",
		"\n1:" + a[:30]:         "line 2: the key is not",
		"0:" + a:                "the number before the colon must be 1 to 9999",
		"01:" + a:               "the number before the colon",
		"10000:" + a:            "the number before the colon",
		a + "\n1:" + b:          "line 2: key 1 is there twice",
	} {
		_, err := ParseKeys(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseKeys(%q): %v, want an error with %q", text, err, want)
		}
	}
}

// TestSecrets: to print, log or marshal what holds keys, or a struct or slice
// with it, does not show them.
func TestSecrets(t *testing.T) {
	const secret = "*Wherefore art5?" // 16 bytes
	keys := must.Get(ParseKeys("7:" + hex.EncodeToString([]byte(secret))))(t)
	codec := must.Get(keys.Codec("orders", firn.Default()))(t)
	type config struct {
		Keys   Keys
		keys   Keys
		Codec  *Codec
		Cipher *Cipher
	}
	both := config{keys, keys, codec, codec.newest}
	forms := []string{secret, base64.StdEncoding.EncodeToString([]byte(secret[:15]))}
	for _, verb := range []string{"%x", "%X", "% x", "%d", "%#v"} {
		forms = append(forms, strings.Trim(fmt.Sprintf(verb, []byte(secret)), "[]byte{}"))
	}
	for _, v := range []any{keys, &keys, codec, *codec, codec.newest, *codec.newest, both, &both, []any{keys, codec}} {
		var shown bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "% x"} {
			fmt.Fprintf(&shown, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&shown, nil)).Info("start", "with", v)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("start", "with", v)
		text, err := json.Marshal(v)
		fmt.Fprintln(&shown, string(text), err)
		for _, form := range forms {
			if strings.Contains(shown.String(), form) {
				t.Errorf("%T shows the key as %s:\n%s", v, form, &shown)
			}
		}
	}
}

// Every number of a domain is reached by exactly one other.
func FuzzVeil(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), "orders", uint64(1))
	f.Fuzz(func(t *testing.T, key []byte, name string, n uint64) {
		for _, l := range layouts {
			c, err := New(key, name, l)
			if err != nil {
				continue
			}
			if id, err := c.Veil(firn.ID(n)); err == nil {
				if back, err := c.Unveil(id); err != nil || back != firn.ID(n) {
					t.Errorf("%d: veiled as %v, unveiled as %v, %v", n, id, back, err)
				}
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("v1_03887nf7a8003")
	f.Fuzz(func(t *testing.T, text string) {
		x := codecOf(t, strings.Repeat("0", 64), "orders", firn.Default())
		id, err := x.Parse(text)
		if err != nil {
			return
		}
		if again, err := x.Text(id); err != nil || again != text {
			t.Errorf("%q is read as %v, and written as %s, %v", text, id, again, err)
		}
	})
}

func BenchmarkVeil(b *testing.B) {
	for _, width := range []int{53, 63, 122} {
		c, err := New(make([]byte, 32), "orders", layouts[width])
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			b.ReportAllocs()
			id, v7 := firn.ID(1), firn.ID128{6: 0x70, 8: 0x80, 15: 1}
			for b.Loop() {
				if width == 122 {
					_, err = c.Veil128(v7)
				} else {
					_, err = c.Veil(id)
				}
			}
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
