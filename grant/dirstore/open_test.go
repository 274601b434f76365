//go:build linux || darwin || windows

package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// tree returns the names of everything below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			names = append(names, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
}

// TestOpenRefuses opens directories that are not stores or cannot be used. The
// error describes the problem, and nothing is changed.
func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		name          string
		file, content string // what is in the directory
		path          string // below the directory
		create        bool
		is            error
		says          string
	}{
		{name: "not a directory", path: "none", is: ErrNoStore, says: "?create=true"},
		{name: "no directory, far down", path: "a/b/c", is: ErrNoStore, says: "does not exist"},
		{name: "empty directory", is: ErrNoStore, says: "is empty"},
		{name: "what Unix puts there", file: "lost+found", is: ErrNoStore, says: "is empty"},
		{name: "what macOS puts there", file: ".DS_Store", is: ErrNoStore, says: "is empty"},
		{name: "a file", file: "file", path: "file", create: true, is: errNotStore, says: "not a directory"},
		{name: "below a file", file: "file", path: "file/store", create: true, says: "file"},
		{name: "other files", file: "letter.txt", create: true, is: errNotStore, says: "letter.txt"},
		{
			name: "records without the marker", file: "rec+a", content: string(encodeRecord("a", []byte("1"))),
			create: true, is: errNotStore, says: "would repeat IDs",
		},
		{"newer", markerName, "firn dirstore format 2\n", "", true, grant.ErrNewerVersion, "this version only knows format 1"},
		{"damaged marker", markerName, "firn dirst", "", true, errNotStore, "does not begin with"},
		{"empty marker", markerName, "", "", true, errNotStore, "does not begin with"},
		{"marker of format 0", markerName, "firn dirstore format 0\n", "", true, errNotStore, "does not begin with"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if test.file != "" {
				write(t, filepath.Join(dir, test.file), test.content)
			}
			before := tree(t, dir)
			path := filepath.Join(dir, test.path)
			s, err := openStore(t.Context(), path, &Options{AllowVolatile: true, Create: test.create})
			if err == nil {
				_ = s.Close()
				t.Fatalf("Open succeeds")
			}
			if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("Open = %q, want %q that has %q and the path", err, test.is, test.says)
			}
			if after := tree(t, dir); !slices.Equal(before, after) {
				t.Errorf("Open has left %q, there was %q", after, before)
			}
		})
	}
	if _, err := openStore(t.Context(), "", nil); err == nil {
		t.Errorf("openStore(t.Context(), \"\") succeeds")
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some", "where", "store")
	s := open(t, path)
	mustCAS(t, s, "v1/orders/n/00042", "", "1")
	want := []string{"/firn-store", "/lock+", "/lock+v1+orders+n+00042", "/rec+v1+orders+n+00042"}
	if got := tree(t, path); filepath.Separator == '/' && !slices.Equal(got, want) {
		t.Errorf("the store has the files %q, want %q", got, want)
	}
	text, err := os.ReadFile(filepath.Join(path, markerName))
	if err != nil || !strings.HasPrefix(string(text), "firn dirstore format 1\n") {
		t.Errorf("the marker is %q, %v", text, err)
	}
	if runtime.GOOS != "windows" {
		for _, dir := range []string{path, filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
			if mode := stat(t, dir).Mode().Perm(); mode != 0o700 {
				t.Errorf("%s has mode %o, want 700", dir, mode)
			}
		}
		for _, name := range want {
			if mode := stat(t, path+name).Mode().Perm(); mode != 0o600 {
				t.Errorf("%s has mode %o, want 600", name, mode)
			}
		}
	}
	// From here on it exists, and opens without options.
	again := must.Get(openStore(t.Context(), path, &Options{AllowVolatile: true}))(t)
	if v, err := again.Get(t.Context(), "v1/orders/n/00042"); string(v) != "1" || err != nil {
		t.Errorf("Get = %q, %v, want 1", v, err)
	}
	must.Do(t, again.Close())
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	return must.Get(os.Stat(path))(t)
}

// TestDamaged has files that do not contain what was written. Each causes an
// error that names the file, for every call that needs it, and is left
// unchanged.
func TestDamaged(t *testing.T) {
	good := encodeRecord("v1/a", []byte("value"))
	for name, test := range map[string]struct {
		content string
		want    error
	}{
		"empty":       {"", grant.ErrDamaged},
		"cut":         {string(good[:len(good)-2]), grant.ErrDamaged},
		"zeros":       {strings.Repeat("\x00", len(good)), grant.ErrDamaged},
		"huge":        {strings.Repeat("x", 1<<20), grant.ErrDamaged},
		"another key": {string(encodeRecord("v1/b", []byte("value"))), grant.ErrDamaged},
		"newer":       {"firn-record 2 and more\n", grant.ErrNewerVersion},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			ctx := t.Context()
			for _, key := range []string{"v1/a", "v1/z"} {
				mustCAS(t, s, key, "", "value")
			}
			path := filepath.Join(dir, "rec+v1+a")
			write(t, path, test.content)
			want := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, test.want) || !errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), "rec+v1+a") {
					t.Errorf("%s = %v, want %q and ErrNotSent that names the file", what, err, test.want)
				}
				if n := strings.Count(err.Error(), "grant: the record"); n != 1 {
					t.Errorf("%s = %v, which says %d times that the record is damaged or newer", what, err, n)
				}
			}
			_, err := s.Get(ctx, "v1/a")
			want("Get", err)
			for _, old := range []string{"", "value"} {
				ok, err := s.CAS(ctx, "v1/a", []byte(old), []byte("other"))
				if ok {
					t.Errorf("CAS of a damaged record = true")
				}
				want("CAS", err)
			}
			// If it is one of many, its text is shown.
			shown := make(map[string]string)
			err = s.List(ctx, "v1/", func(key string, value []byte) bool { shown[key] = string(value); return true })
			if test.want == grant.ErrDamaged {
				if err != nil || len(shown) != 2 || shown["v1/z"] != "value" || !strings.Contains(shown["v1/a"], "rec+v1+a") {
					t.Errorf("List = %q, %v, want all keys, and what is wrong", shown, err)
				}
			} else {
				want("List", err)
			}
			if err := s.List(ctx, "v1/z", func(string, []byte) bool { return true }); err != nil {
				t.Errorf("List of others = %v", err)
			}
			if got, err := os.ReadFile(path); string(got) != test.content || err != nil {
				t.Errorf("the file has changed: %v", err)
			}
			mustCAS(t, s, "v1/z", "value", "other")
		})
	}
}

// A store whose directory is removed, or replaced by a copy, does not continue
// in either.
func TestDirectoryGoesAway(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not let a directory go that is open")
	}
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	mustCAS(t, s, "a", "", "1")
	want := func(when, what string) {
		t.Helper()
		_, getErr := s.Get(t.Context(), "a")
		_, absentErr := s.Get(t.Context(), "b")
		ok, casErr := s.CAS(t.Context(), "a", []byte("1"), []byte("2"))
		_, newErr := s.CAS(t.Context(), "b", nil, []byte("2"))
		listErr := s.List(t.Context(), "", func(string, []byte) bool { t.Error("List yields"); return true })
		if ok {
			t.Errorf("%s: CAS = true", when)
		}
		for i, err := range []error{getErr, absentErr, casErr, newErr, listErr} {
			if !errors.Is(err, grant.ErrNotSent) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: call %d = %v, want ErrNotSent that names the directory and has %q", when, i, err, what)
			}
		}
	}
	must.Do(t, os.Rename(dir, dir+".old"))
	want("moved away", "no such file")
	must.Do(t, os.CopyFS(dir, os.DirFS(dir+".old")))
	before := tree(t, dir)
	want("replaced by a copy", "restart this program")
	if after := tree(t, dir); !slices.Equal(before, after) {
		t.Errorf("the copy has now %q, it had %q", after, before)
	}
	must.Do(t, errors.Join(os.RemoveAll(dir), os.Rename(dir+".old", dir)))
	mustCAS(t, s, "a", "1", "2")
}

// TestDamagedText: the error of a damaged record says that once, with the key
// and the file.
func TestDamagedText(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	info := must.Get(grant.Create(t.Context(), s, "s", grant.DefaultConfig(s, firn.Default(), nil), nil))(t)
	mustCAS(t, s, "v1/s/n/0007", "", "value")
	write(t, filepath.Join(dir, "rec+v1+s+n+0007"), "x")
	want := "grant: the record is damaged: v1/s/n/0007: dirstore: file rec+v1+s+n+0007 in " + dir + ": invalid first line"
	_, err := grant.LookupNode(t.Context(), s, info, 7)
	if err == nil || err.Error() != want {
		t.Errorf("LookupNode = %v, want %s", err, want)
	}
	must.Do(t, grant.Nodes(t.Context(), s, "s", func(_ grant.NodeInfo, err error) bool {
		if err == nil || err.Error() != want {
			t.Errorf("Nodes = %v, want %s", err, want)
		}
		return true
	}))
}
