package dirstore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/firnid/firn/grant"
)

// These names are on users' disks. Do NOT make changes to them.
func TestFileName(t *testing.T) {
	for key, want := range map[string]string{
		"a":                      "a",
		"v1/orders/n/00042":      "v1+orders+n+00042",
		"v1/Orders/config":       "v1+!orders+config",
		"A:b.c_d-E":              "!a!0b.c_d-!e",
		"a.":                     "a!1",
		"a./b":                   "a.+b",
		"con":                    "con",
		strings.Repeat("a", 100): strings.Repeat("a", 100),
		strings.Repeat("a", 101): strings.Repeat("a", 36) + "~",
		strings.Repeat("Z", 51):  strings.Repeat("!z", 18) + "~",
	} {
		got := fileName(key)
		if want, _, long := strings.Cut(want, "~"); long {
			if !strings.HasPrefix(got, want+"~") || len(got) != 101 {
				t.Errorf("fileName(%q) = %q, want %s~ and 64 digits", key, got, want)
			}
		} else if got != want {
			t.Errorf("fileName(%q) = %q, want %q", key, got, want)
		}
	}
	const long = "v1/a-name-of-a-sequencer-that-somebody-has-chosen-to-be-so-long-that-no-file-can-have-it-for-its-name/n/00042"
	if got, want := fileName(long), "v1+a-name-of-a-sequencer-that-somebo~70905c6108f53fcefaa8d906176190939bac520e3930c856b54cc12250b2345b"; got != want {
		t.Errorf("fileName(%q) = %q, want %q", long, got, want)
	}
}

func FuzzFileName(f *testing.F) {
	for _, key := range []string{"a", "A", "a.", "v1/Orders/n/00042", "a:b", "a!0b", "con", strings.Repeat("aB", 60), strings.Repeat("a", 256)} {
		f.Add(key, "b")
		f.Add(key, strings.ToLower(key))
	}
	form := regexp.MustCompile(`^[a-z0-9][a-z0-9._+!-]*(~[0-9a-f]{64})?$|^![a-z][a-z0-9._+!-]*(~[0-9a-f]{64})?$`)
	f.Fuzz(func(t *testing.T, key, other string) {
		if name, long, ok := keyOfName(key); ok && !long && fileName(name) != key {
			t.Errorf("keyOfName(%q) = %q, whose name is %q", key, name, fileName(name))
		}
		if grant.CheckKey(key) != nil || grant.CheckKey(other) != nil {
			return
		}
		name := fileName(key)
		if !form.MatchString(name) || strings.HasSuffix(name, ".") || len(lockPrefix+name) > 143 {
			t.Errorf("fileName(%q) = %q, which is no name for every system", key, name)
		}
		got, long, ok := keyOfName(name)
		if !ok || !long && got != key {
			t.Errorf("keyOfName(%q) = %q, %v, want %q", name, got, ok, key)
		}
		if (key == other) != strings.EqualFold(name, fileName(other)) {
			t.Errorf("the names of %q and %q are %q and %q", key, other, name, fileName(other))
		}
	})
}
