package service

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "7", "orders", "com.example.Orders", "eu:orders_2-b", strings.Repeat("x", MaxName)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"": "empty", ".hidden": "begins with '.'", "..": "begins with '.'", "-n": "begins with '-'", "a/b": "'/' at offset 1", "a b": "' ' at offset 1",
		"größe": "'ö' at offset 2", "a\xffb": "the byte at offset 1 is not UTF-8", "a\x00b": `'\x00' at offset 1`, strings.Repeat("x", MaxName+1): "129 characters",
	} {
		if err := CheckName(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "1 to 128 characters") {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
}
