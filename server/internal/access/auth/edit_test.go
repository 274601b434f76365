package auth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

const (
	hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	hashC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

// TestEdit: entries change as requested, and other entries and comments stay,
// however the file is written.
func TestEdit(t *testing.T) {
	short := strings.NewReplacer("A", hashA, "B", hashB, "C", hashC)
	rotate := func(data []byte) ([]byte, error) { return Rotate(data, "f", "web", hashB) }
	removeOld := func(data []byte) ([]byte, error) { return RemoveOld(data, "f", "web") }
	remove := func(data []byte) ([]byte, error) { return Remove(data, "f", "web") }
	for _, row := range []struct {
		name      string
		edit      func([]byte) ([]byte, error)
		old, want string
	}{
		{"scalar", rotate, "tokens:\n  - name: web\n    sha256: A # ours\n    role: read\n", "tokens:\n  - name: web\n    sha256: [A, B] # ours\n    role: read\n"},
		{"quotes", rotate, "tokens:\n  - {name: \"web\", sha256: \"A\", role: read}", "tokens:\n  - {name: \"web\", sha256: [A, B], role: read}\n"},
		{"a folded hash", rotate, "tokens:\n  - name: web\n    role: read\n    sha256: >-\n      A\n", "tokens:\n  - name: web\n    role: read\n    sha256: [A, B]\n"},
		{"after wide characters", rotate, "tokens: [{name: höß, sha256: C, role: read}, {name: web, role: read, sha256: A}]\n", "tokens: [{name: höß, sha256: C, role: read}, {name: web, role: read, sha256: [A, B]}]\n"},
		{"block", rotate, "tokens:\n  - name: web\n    sha256:\n      - A\n    role: read\n", "tokens:\n  - name: web\n    sha256: [A, B]\n    role: read\n"},

		{"old of list", removeOld, "tokens:\n  - name: web\n    sha256: [A, B] # ours\n    role: read\n", "tokens:\n  - name: web\n    sha256: B # ours\n    role: read\n"},
		{"old of block", removeOld, "tokens:\n  - name: web\n    sha256:\n      - A\n      - B\n    role: read\n", "tokens:\n  - name: web\n    sha256: B\n    role: read\n"},

		{"first", remove, "tokens: # all\n  - name: web\n    sha256: A\n    role: read\n\n  # the ops team\n  - {name: ops, dns: ops, role: admin}\n", "tokens: # all\n  # the ops team\n  - {name: ops, dns: ops, role: admin}\n"},
		{"of a flow", remove, "tokens: [{name: web, sha256: A, role: read}, {name: x, sha256: B, role: read}]", "tokens: [{name: x, sha256: B, role: read}]\n"},
		{"only", remove, "# ours\ntokens:\n  - name: web\n    sha256: A\n    role: read\n", "# ours\ntokens: []\n"},
	} {
		got, err := row.edit([]byte(short.Replace(row.old)))
		if want := "---\n" + short.Replace(row.want) + "...\n"; err != nil || string(got) != want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", row.name, err, got, want)
		}
	}
	for _, row := range []struct {
		name string
		edit func([]byte) ([]byte, error)
		old  string
		want string
	}{
		{"no entry", rotate, "tokens: []\n", "entry not found"},
		{"three", rotate, "tokens: [{name: web, sha256: [A, C], role: read}]", "already has two tokens"},
		{"certificate", rotate, "tokens: [{name: web, dns: web.example, role: read}]", "is for a certificate (dns web.example)"},
		{"the same again", rotate, "tokens: [{name: web, sha256: B, role: read}]", "already used"},
		{"no old one", removeOld, "tokens: [{name: web, sha256: A, role: read}]", "no old token"},
		{"an alias", rotate, "tokens: [{name: x, sha256: A, role: read}, {name: web, sha256: *a, role: read}]", "unknown anchor"},
		{"a file that is wrong", remove, "tokens: [{name: web}]", "role is"},
	} {
		if got, err := row.edit([]byte(short.Replace(row.old))); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want an error with %q\n%s", row.name, err, row.want, got)
		}
	}
	if _, err := remove([]byte("tokens: []")); !errors.Is(err, ErrNoEntry) {
		t.Errorf("got %v, want ErrNoEntry", err)
	}
}

// TestAddToEmpty: entries can be added to a file that allows no client.
func TestAddToEmpty(t *testing.T) {
	for _, old := range []string{"", "\n", "tokens:\n", "tokens: []", "# none\ntokens: []\n"} {
		data, err := Add([]byte(old), "f", &Entry{Name: "web", SHA256: []string{hashA}, Role: Read})
		if err != nil {
			t.Errorf("%q: %v", old, err)
			continue
		}
		if all, err := Entries(data, "f"); err != nil || len(all) != 1 || all[0].Name != "web" || len(all[0].SHA256) != 1 {
			t.Errorf("%q: got %v, %v\n%s", old, all, err, data)
		}
	}
}

// TestCutFile: a file that firn token has written is read as a whole, or not at
// all, wherever it is cut and whatever its last lines restrict.
func TestCutFile(t *testing.T) {
	never, whole := false, []byte("# ours\ntokens: []\n")
	for _, e := range []*Entry{
		{Name: "ops", SHA256: []string{hashA}, Role: Admin},
		{Name: "web", SHA256: []string{hashB}, Role: Generate, Sequencers: []string{"orders-*", "a-*-eu"}, Create: &never, Expires: "2027-06-01T00:00:00+02:00"},
	} {
		var err error
		if whole, err = Add(whole, "f", e); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.TrimRight(string(whole), "\n")
	// As Firn writes it, and as other programs do: a byte order mark, a
	// directive, a remark beside the first line.
	for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + text, "%YAML 1.1\n" + text, strings.Replace(text, "---", "--- # ours", 1)} {
		for n := range len(text) {
			if all, err := Entries([]byte(text[:n]), "f"); err == nil {
				t.Errorf("%d of %d bytes have %d entries:\n%s", n, len(text), len(all), text[:n])
			}
		}
		if all, err := Entries([]byte(text), "f"); err != nil || len(all) != 2 || len(all[1].Sequencers) != 2 {
			t.Errorf("%v, %v of the whole file:\n%s", all, err, text)
		}
	}
}

// TestEditLink: the file that a symbolic link names is changed, or created, and
// the link stays.
func TestEditLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "a"), 0o700), os.Symlink(filepath.Join("a", "next"), link), os.Symlink("tokens.yaml", filepath.Join(dir, "a", "next"))); err != nil {
		t.Skip(err) // of a Windows that does not allow it
	}
	for _, name := range []string{"one", "two"} {
		hash := map[string]string{"one": hashA, "two": hashB}[name]
		err := EditFile(link, func(data []byte) ([]byte, error) {
			return Add(data, link, &Entry{Name: name, SHA256: []string{hash}, Role: Read})
		})
		text, readErr := os.ReadFile(filepath.Join(dir, "a", "tokens.yaml"))
		if target, linkErr := os.Readlink(link); err != nil || readErr != nil || linkErr != nil || target != filepath.Join("a", "next") || !strings.Contains(string(text), hash) {
			t.Errorf("%s: %v, %v, %v; the link names %q, and its target has\n%s", name, err, readErr, linkErr, target, text)
		}
	}
}

// TestRotation: both tokens of an entry identify the same client, and the use
// of the old one is noticed.
func TestRotation(t *testing.T) {
	old, oldHash := NewToken()
	fresh, freshHash := NewToken()
	before := setOf(t, "{name: web, sha256: "+oldHash+", role: generate, create: true}")
	both := setOf(t, "{name: web, sha256: ["+oldHash+", "+freshHash+"], role: generate, create: true}")
	after := setOf(t, "{name: web, sha256: ["+freshHash+"], role: generate, create: true}")
	set := before
	g := NewGuard(func() *Set { return set }, nil)
	lasting := &Credentials{Token: old, Given: true} // of a lasting connection
	allowed := func(c *Credentials, do Action, name string) bool { return g.Allow(c, do, name) == nil }
	if !allowed(lasting, Create, "a") || len(before.Replaced()) != 0 {
		t.Error("a token that is not rotated is refused, or called old")
	}
	set = both
	if both.Len() != 1 || !allowed(&Credentials{Token: fresh, Given: true}, Take, "a") || len(both.Replaced()) != 0 {
		t.Error("the new token is refused, or called old")
	}
	for range 2 {
		if !allowed(lasting, Take, "a") {
			t.Error("the old token is refused")
		}
		if names := both.Replaced(); len(names) != 1 || names[0] != "web" {
			t.Errorf("old tokens are used of %q, want of web", names)
		}
	}
	set = after
	if allowed(lasting, Take, "a") || !allowed(&Credentials{Token: fresh, Given: true}, Take, "a") {
		t.Error("after the rotation the old token works, or the new one does not")
	}

	// A session of the console ends with its own token, not with the other one.
	s := NewSessions(time.Hour)
	for token, lasts := range map[string]bool{old: false, fresh: true} {
		p, _ := both.Token(token, now)
		cookie := s.Cookie(p, false, now).Value
		if got, ok := s.principal(cookie, both, false, now); !ok || got != p {
			t.Errorf("a session is of %v, want %v", got, p)
		}
		if _, ok := s.principal(cookie, after, false, now); ok != lasts {
			t.Errorf("a session lasts past the removal of the old token: %t, want %t", ok, lasts)
		}
	}
	for _, wrong := range []string{"[]", "[" + hashA + ", " + hashB + ", " + hashC + "]", "[" + hashA + ", " + hashA + "]", "[[" + hashA + "]]", "{a: b}"} {
		if _, err := Parse([]byte("tokens: [{name: web, sha256: "+wrong+", role: read}]"), "f"); err == nil {
			t.Errorf("sha256: %s is accepted", wrong)
		}
	}
}

// TestEditFile: a file is replaced as a whole and keeps its mode, an edit that
// fails changes nothing, and two at once do not undo each other's changes.
func TestEditFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	edit := func(was, next string, fails error) error {
		return EditFile(path, func(data []byte) ([]byte, error) {
			if string(data) != was {
				t.Errorf("the file has %q, want %q", data, was)
			}
			return []byte(next), fails
		})
	}
	want := func(what, text string, mode fs.FileMode) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil || string(data) != text {
			t.Errorf("%s: the file has %q, %v, want %q", what, data, err, text)
		}
		info := must.Get(os.Stat(path))(t)
		if info.Mode().Perm() != mode && runtime.GOOS != "windows" {
			t.Errorf("%s: mode %v, want %v", what, info.Mode(), mode)
		}
		if _, err := os.Lstat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the new file is left: %v", what, err)
		}
	}
	must.Do(t, edit("", "one", nil))
	want("created", "one", 0o600)
	must.Do(t, os.Chmod(path, 0o640))
	must.Do(t, edit("one", "two", nil))
	want("changed", "two", 0o640)
	if err := edit("two", "x", errors.ErrUnsupported); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an edit that fails: %v", err)
	}
	want("not changed", "two", 0o640)
	must.Do(t, EditFile(path, func([]byte) ([]byte, error) {
		if err := edit("two", "x", nil); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an edit during another one: %v, want ErrExist", err)
		}
		return []byte("three"), nil
	}))
	want("changed once", "three", 0o640)
}
