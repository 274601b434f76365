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
		"empty":                {"", errDamaged},
		"zeros":                {strings.Repeat("\x00", len(good)), errDamaged},
		"cut":                  {good[:len(good)-1], errDamaged},
		"cut in the line":      {good[:20], errDamaged},
		"cut after the line":   {good[:strings.Index(good, "\n")+1], errDamaged},
		"longer":               {good + "x", errDamaged},
		"newline at the end":   {good + "\n", errDamaged},
		"another value":        {strings.Replace(good, "\nvalue", "\nvaluf", 1), errDamaged},
		"another key":          {strings.Replace(good, "\nkey\n", "\nkez\n", 1), errDamaged},
		"bad key":              {string(encodeRecord("a//b", []byte("1"))), errDamaged},
		"no value":             {string(encodeRecord("a", nil)), errDamaged},
		"long value":           {string(encodeRecord("a", make([]byte, 4096+1))), errDamaged},
		"a space more":         {strings.Replace(good, " key", "  key", 1), errDamaged},
		"capital digits":       {strings.ToUpper(good[:32]) + good[32:], errDamaged},
		"text":                 {"hello, world\n", errDamaged},
		"newer":                {strings.Replace(good, "record 1", "record 2", 1), errNewer},
		"newer, of other form": {"firn-record 37 sha256=0\n", errNewer},
		"version of none":      {strings.Replace(good, "record 1", "record x", 1), errDamaged},
		"version 0":            {strings.Replace(good, "record 1", "record 0", 1), errDamaged},
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
			if !errors.Is(err, errDamaged) && !errors.Is(err, errNewer) {
				t.Errorf("decodeRecord(%q) = %v, want errDamaged or errNewer", file, err)
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
