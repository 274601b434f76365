package service

import (
	"strings"
	"testing"
)

// TestCheckName: the error says what a client has to change.
func TestCheckName(t *testing.T) {
	if err := CheckName("eu:orders_2-b"); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"": "of 0 bytes", "é": `"é" at offset 0`, "..": `"." at offset 0`, "-n": `"-" at offset 0`, "a/b": `"/" at offset 1`, "a\xffb": "offset 1", strings.Repeat("x", 129): "of 129 bytes"} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "grant: ") {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
