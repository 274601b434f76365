//go:build linux || darwin

package dirstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
)

// tryStore is the role: it opens the store, and uses it.
func tryStore() error {
	s, err := openStore(context.Background(), os.Getenv("FIRN_DIRSTORE_DIR"), &Options{AllowVolatile: true, Create: true})
	if err != nil {
		fmt.Println("open:", err)
		return nil
	}
	if _, err := s.Get(context.Background(), "a"); err != nil {
		fmt.Println("get:", err)
		return nil
	}
	if ok, err := s.CAS(context.Background(), "a", []byte("1"), []byte("2")); !ok || err != nil {
		fmt.Println("cas:", ok, err)
		return nil
	}
	fmt.Println("fine")
	return nil
}

// TestPermissions has a user who lacks permissions. The error contains the file
// and what to do.
func TestPermissions(t *testing.T) {
	const right = "as one user or in a group with mode 2770"
	// If root runs this test, the other user is `nobody`. Otherwise both are
	// the same user.
	owner := os.Geteuid()
	var nobody *syscall.Credential
	if owner == 0 {
		owner, nobody = 65534, &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for _, test := range []struct {
		name  string
		spoil func(dir string) error
		want  []string
	}{
		{"all of one user", func(string) error { return nil }, []string{"fine"}},
		{"directory that may not be written", func(dir string) error { return os.Chmod(dir, 0o500) }, []string{"open:", "permission denied", right}},
		{"directory that may not be read", func(dir string) error { return os.Chmod(dir, 0o300) }, []string{"open:", "permission denied", right}},
		{"directory that may not be entered", func(dir string) error { return os.Chmod(dir, 0o600) }, []string{"open:", "permission denied", right}},
		{"marker that may not be read", func(dir string) error { return os.Chmod(dir+"/"+markerName, 0) }, []string{"open:", "permission denied", markerName, right}},
		{"record that may not be read", func(dir string) error { return os.Chmod(dir+"/rec+a", 0) }, []string{"get:", "permission denied", "rec+a", right}},
		{"lock that may not be opened", func(dir string) error { return os.Chmod(dir+"/lock+a", 0) }, []string{"cas:", "permission denied", "lock+a", right}},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := t.TempDir()
			must.Do(t, os.Chmod(filepath.Dir(top), 0o755))
			dir := filepath.Join(top, "store")
			s := open(t, dir)
			mustCAS(t, s, "a", "", "1")
			for _, name := range append(tree(t, dir), "") {
				must.Do(t, os.Lchown(dir+name, owner, -1))
			}
			must.Do(t, test.spoil(dir))
			out, wait := start(t, nobody, "try", dir)
			wait()
			got := out.String()
			if err := os.Chmod(dir, 0o700); err != nil { // so that it can be removed
				t.Fatal(err)
			}
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("the process says %q, want %q in it", got, want)
				}
			}
		})
	}
}

// TestRemovedLock: a call that waits for a lock whose file is removed does not
// write beside those that use the new file.
func TestRemovedLock(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	mustCAS(t, s, "a", "", "1")
	held := must.Get(s.disk.lock("lock+a"))(t)
	defer held.release()
	for _, replace := range []bool{false, true} {
		must.Do(t, os.Remove(filepath.Join(dir, "lock+a")))
		if replace {
			mustCAS(t, s, "a", "1", "2")
		}
		if ok, err := held.try(); ok || err == nil || !strings.Contains(err.Error(), "lock+a was removed or replaced") {
			t.Errorf("replaced %t: %t, %v, want an error", replace, ok, err)
		}
		if !replace {
			mustCAS(t, s, "a", "1", "1")
		}
	}
}

// TestIrregularFiles has something else in place of a file of the store. Nothing
// waits for it, other records stay usable, and the error has the file.
func TestIrregularFiles(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o660) },
		"directory": func(path string) error { return os.Mkdir(path, 0o770) },
		"link":      func(path string) error { return os.Symlink("rec+b", path) },
		"dead link": func(path string) error { return os.Symlink("rec+none", path) },
		"socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	} {
		for _, name := range []string{"rec+a", "lock+a", "firn-store", "tmp+a"} {
			t.Run(what+" "+name, func(t *testing.T) {
				dir, err := os.MkdirTemp("", "") // a short path, for the socket
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
				s := open(t, dir)
				for _, key := range []string{"a", "b"} {
					mustCAS(t, s, key, "", "1")
				}
				_ = os.Remove(filepath.Join(dir, name))
				must.Do(t, put(filepath.Join(dir, name)))
				wrong := func(what string, err error) {
					t.Helper()
					if !errors.Is(err, grant.ErrDamaged) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
						t.Errorf("%s: %v, want grant.ErrDamaged with the file", what, err)
					}
				}
				if name == "rec+a" {
					_, err := s.Get(t.Context(), "a")
					wrong("Get", err)
				}
				if name == "rec+a" || name == "lock+a" {
					_, err := s.CAS(t.Context(), "a", []byte("1"), []byte("2"))
					wrong("CAS", err)
				}
				mustCAS(t, s, "b", "1", "2")
				again, err := openStore(t.Context(), dir, &Options{AllowVolatile: true})
				if err == nil {
					_ = again.Close()
				}
				if name == "firn-store" {
					wrong("Open", err)
				} else if err != nil {
					t.Errorf("Open: %v", err)
				}
			})
		}
	}
}
