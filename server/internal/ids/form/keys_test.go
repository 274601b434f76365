package form

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVeilKeysCut: a file of keys that is cut anywhere has none but its own
// keys.
func TestVeilKeysCut(t *testing.T) {
	text := ""
	for n, digits := range []int{32, 64, 48} {
		text += fmt.Sprintf("%d:%s\n", n+1, strings.Repeat("0123456789abcdef", 4)[:digits])
	}
	path := filepath.Join(t.TempDir(), "keys")
	read := func(text string) (map[int][]byte, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadKeys(path)
	}
	whole, err := read(text)
	if err != nil || len(whole) != 3 {
		t.Fatalf("%v, %v, want three keys", whole, err)
	}
	for n := range len(text) {
		keys, _ := read(text[:n])
		for number, key := range keys {
			if string(key) != string(whole[number]) {
				t.Errorf("%d bytes: key %d is %x, want %x", n, number, key, whole[number])
			}
		}
	}
}
