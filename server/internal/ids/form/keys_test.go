package form

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/veil"
)

// TestVeilKeysCut: a file of keys that is cut anywhere has none but its own
// keys.
func TestVeilKeysCut(t *testing.T) {
	text := ""
	for n, digits := range []int{32, 64, 48} {
		text += fmt.Sprintf("%d:%s\n", n+1, strings.Repeat("0123456789abcdef", 4)[:digits])
	}
	path := filepath.Join(t.TempDir(), "keys")
	read := func(text string) (veil.Keys, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadKeys(path)
	}
	codec := func(keys veil.Keys) *veil.Codec {
		c, err := keys.Codec("orders", firn.Default())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	all, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	whole, used := codec(all), make(map[string]bool)
	for n := range len(text) + 1 {
		keys, err := read(text[:n])
		if err != nil {
			continue
		}
		veiled, err := codec(keys).Text(1) // with the last key
		if id, parseErr := whole.Parse(veiled); id != 1 || err != nil || parseErr != nil {
			t.Errorf("%d bytes: ID 1 is veiled as %s, %v, which is %d, %v", n, veiled, err, id, parseErr)
		}
		used[veiled] = true
	}
	if len(used) != 3 {
		t.Errorf("%d keys were used, want 3", len(used))
	}
}
