package grant

import (
	"errors"
	"regexp"
	"testing"
)

// keyForm is a second definition of what CheckKey accepts, except for the
// length.
var keyForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9][A-Za-z0-9._:-]*)*$`)

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
