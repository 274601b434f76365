package grant

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

// keyForm is a second definition of what CheckKey accepts, except for the
// length.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$`)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{
		"a", "0", "Z", "a.", "a-_.:", "v1/orders/n/00042", "a/b/c", "A/b", "con", "nul.txt", "a..b", "a/0.",
		strings.Repeat("a", maxKey), strings.Repeat("a/", maxKey/2-1) + "ab",
	} {
		if err := CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v, want nil", key, err)
		}
		if !keyForm.MatchString(key) {
			t.Errorf("the expression refuses %q", key)
		}
	}
	for key, want := range map[string]string{
		"":                            "1 to 256 bytes, not 0",
		strings.Repeat("a", maxKey+1): "1 to 256 bytes, not 257",
		"/":                           `"/" at offset 0`,
		"/a":                          `"/" at offset 0`,
		"a/":                          `"/" at offset 1`,
		"a//b":                        `"/" at offset 2`,
		".":                           `"." at offset 0`,
		"..":                          `"." at offset 0`,
		"../a":                        `"." at offset 0`,
		"a/../b":                      `"." at offset 2`,
		"a/-b":                        `"-" at offset 2`,
		"_a":                          `"_" at offset 0`,
		":":                           `":" at offset 0`,
		"a b":                         `" " at offset 1`,
		"a\x00":                       `"\x00" at offset 1`,
		"a\n":                         `"\n" at offset 1`,
		"ö":                           `"\xc3" at offset 0`,
		"aö":                          `"\xc3" at offset 1`,
		`a\b`:                         `"\\" at offset 1`,
		"a%2fb":                       `"%" at offset 1`,
		"a*":                          `"*" at offset 1`,
	} {
		err := CheckKey(key)
		if !errors.Is(err, ErrNotSent) || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckKey(%q) = %v, want ErrNotSent that has %q", key, err, want)
		}
		if len(key) <= maxKey && keyForm.MatchString(key) {
			t.Errorf("the expression takes %q", key)
		}
	}
}

func FuzzCheckKey(f *testing.F) {
	for _, key := range []string{"v1/orders/n/00042", "a//b", "/a", "a/", "", "a:b", "..", "ö", "\xff"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := CheckKey(key)
		if want := len(key) <= maxKey && keyForm.MatchString(key); (err == nil) != want {
			t.Errorf("CheckKey(%q) = %v, want taken: %v", key, err, want)
		}
		if err != nil && !errors.Is(err, ErrNotSent) {
			t.Errorf("CheckKey(%q) = %v, want ErrNotSent", key, err)
		}
	})
}

func TestCheckValue(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, maxValue: true, maxValue + 1: false} {
		err := CheckValue(make([]byte, n))
		if (err == nil) != want || err != nil && !errors.Is(err, ErrNotSent) {
			t.Errorf("CheckValue of %d bytes = %v, want taken: %v", n, err, want)
		}
	}
	if err := CheckValue(nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("CheckValue(nil) = %v, want ErrNotSent", err)
	}
}
