package dirstore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
)

// This format is on users' disks. Do NOT make changes to it.
func TestEncodeRecord(t *testing.T) {
	const want = "firn-record 1 crc32c=50c9306f key=17 value=4\nv1/orders/n/00042\na\nb\x00"
	if got := encodeRecord("v1/orders/n/00042", []byte("a\nb\x00")); string(got) != want {
		t.Errorf("encodeRecord = %q, want %q", got, want)
	}
}

func TestDecodeRecord(t *testing.T) {
	good := string(encodeRecord("key", []byte("value")))
	for what, test := range map[string]struct {
		file string
		want error
	}{
		"good":                 {good, nil},
		"empty":                {"", ErrDamaged},
		"zeros":                {strings.Repeat("\x00", len(good)), ErrDamaged},
		"cut":                  {good[:len(good)-1], ErrDamaged},
		"cut in the line":      {good[:20], ErrDamaged},
		"cut after the line":   {good[:strings.Index(good, "\n")+1], ErrDamaged},
		"longer":               {good + "x", ErrDamaged},
		"newline at the end":   {good + "\n", ErrDamaged},
		"another value":        {strings.Replace(good, "\nvalue", "\nvaluf", 1), ErrDamaged},
		"another key":          {strings.Replace(good, "\nkey\n", "\nkez\n", 1), ErrDamaged},
		"bad key":              {string(encodeRecord("a//b", []byte("1"))), ErrDamaged},
		"no value":             {string(encodeRecord("a", nil)), ErrDamaged},
		"long value":           {string(encodeRecord("a", make([]byte, grant.MaxValue+1))), ErrDamaged},
		"a space more":         {strings.Replace(good, " key", "  key", 1), ErrDamaged},
		"capital digits":       {strings.ToUpper(good[:32]) + good[32:], ErrDamaged},
		"text":                 {"hello, world\n", ErrDamaged},
		"newer":                {strings.Replace(good, "record 1", "record 2", 1), ErrNewer},
		"newer, of other form": {"firn-record 37 sha256=0\n", ErrNewer},
		"version of none":      {strings.Replace(good, "record 1", "record x", 1), ErrDamaged},
		"version 0":            {strings.Replace(good, "record 1", "record 0", 1), ErrDamaged},
	} {
		key, value, err := decodeRecord([]byte(test.file))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: decodeRecord(%q) = %v, want %v", what, test.file, err, test.want)
		}
		if err == nil && (key != "key" || string(value) != "value") {
			t.Errorf("%s: decodeRecord(%q) = %q, %q", what, test.file, key, value)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(encodeRecord("v1/orders/n/00042", []byte("value")))
	f.Add([]byte("firn-record 2 \n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		key, value, err := decodeRecord(file)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Errorf("decodeRecord(%q) = %v, want ErrDamaged or ErrNewer", file, err)
			}
			// As a value it must be returned unchanged.
			if grant.CheckValue(file) != nil {
				return
			}
			k, v, err := decodeRecord(encodeRecord("key", file))
			if k != "key" || !bytes.Equal(v, file) || err != nil {
				t.Errorf("decodeRecord(encodeRecord(%q)) = %q, %q, %v", file, k, v, err)
			}
			return
		}
		if !bytes.Equal(encodeRecord(key, value), file) {
			t.Errorf("decodeRecord(%q) = %q, %q, which is written otherwise", file, key, value)
		}
	})
}
