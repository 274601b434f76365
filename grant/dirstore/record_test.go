package dirstore

import (
	"bytes"
	"errors"
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

func FuzzDecodeRecord(f *testing.F) {
	f.Add(encodeRecord("v1/orders/n/00042", []byte("value")))
	f.Add([]byte("firn-record 2 \n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		key, value, err := decodeRecord(file)
		if err != nil {
			if !errors.Is(err, grant.ErrDamaged) && !errors.Is(err, grant.ErrNewerVersion) {
				t.Errorf("decodeRecord(%q) = %v, want grant.ErrDamaged or grant.ErrNewerVersion", file, err)
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
