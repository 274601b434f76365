//go:build unix

package readfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

// TestReadOther reads what is not a small file: nothing may block or be read
// without a limit.
func TestReadOther(t *testing.T) {
	dir := t.TempDir()
	pipe, large, small := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "small")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	for path, size := range map[string]int{large: 4<<20 + 1, small: 4 << 20} {
		must.Do(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	for path, want := range map[string]string{
		pipe:        "nothing writes to this pipe",
		large:       "larger than 4 MiB",
		"/dev/zero": "larger than 4 MiB",
		dir:         "is a directory",
		dir + "/no": "no such file",
	} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if data, err := Read(small); err != nil || len(data) != 4<<20 {
		t.Errorf("small file: %d bytes, %v", len(data), err)
	}
	if data, err := Read(os.DevNull); err != nil || len(data) != 0 {
		t.Errorf("%s: %d bytes, %v", os.DevNull, len(data), err)
	}
}

// TestReadPipe reads a pipe that has a writer, as a shell's <(command) has.
func TestReadPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(pipe, 0o600))
	w := must.Get(os.OpenFile(pipe, os.O_RDWR, 0))(t) // both ends, so that opening does not wait
	defer w.Close()
	must.Get(io.WriteString(w, "half"))(t)
	if _, err := read(pipe, time.Millisecond, false); err == nil || !strings.Contains(err.Error(), "not read completely within 1ms") {
		t.Errorf("a writer that does not end: %v", err)
	}
	r, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	must.Get(io.WriteString(w2, "all of it"))(t)
	must.Do(t, w2.Close())
	if data, err := Read(fmt.Sprintf("/dev/fd/%d", r.Fd())); err != nil || string(data) != "all of it" {
		t.Errorf("a pipe with a writer: %q, %v", data, err)
	}
}

// TestReadTrusted reads files that other users may have written.
func TestReadTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, row := range []struct {
		mode os.FileMode
		uid  int
		want string
	}{
		{0o600, os.Geteuid(), ""},
		{0o664, os.Geteuid(), ""},
		{0o646, os.Geteuid(), "chmod o-w " + path},
		{0o602, os.Geteuid(), "mode 0602"},
		{0o444, 0, ""},
		{0o666, 0, "can be changed by every user"},
		{0o644, 64001, "belongs to user 64001 (mode 0644)"},
		{0o666, 64001, "owner 64001"},
	} {
		if row.uid != os.Geteuid() && os.Geteuid() != 0 {
			continue // only root can give files away
		}
		_ = os.Remove(path)
		must.Do(t, errors.Join(os.WriteFile(path, []byte("x"), 0o600), os.Chown(path, row.uid, -1), os.Chmod(path, row.mode)))
		switch _, err := ReadTrusted(path); {
		case row.want == "" && err != nil:
			t.Errorf("mode %o of user %d: %v", row.mode, row.uid, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("mode %o of user %d: error %v, want %q", row.mode, row.uid, err, row.want)
		}
	}
	link := path + ".link" // as in a volume of Kubernetes
	must.Do(t, errors.Join(os.Chown(path, os.Geteuid(), -1), os.Chmod(path, 0o444), os.Symlink(path, link)))
	must.Get(ReadTrusted(link))(t)
}

// TestContent: a changed file takes effect at the next Reload, unless it is
// invalid, and a file that has gone is reported once.
func TestContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write := func(text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	parse := func(texts [][]byte) (string, error) {
		if string(texts[0]) == "wrong" {
			return "", errors.ErrUnsupported
		}
		return string(texts[0]) + string(texts[1]), nil
	}
	if _, err := Open(parse, path, ""); err == nil {
		t.Error("a missing file is accepted")
	}
	write("one")
	c := must.Get(Open(parse, path, ""))(t)
	for i, row := range []struct {
		do             func()
		changed, fails bool
		want           string
	}{
		{func() {}, false, false, "one"},
		{func() { write("wrong") }, true, true, "one"},
		{func() {}, false, false, "one"},
		{func() { write("two") }, true, false, "two"},
		{func() { _ = os.Remove(path) }, true, true, "two"},
		{func() {}, false, true, "two"},
		{func() { write("two") }, true, false, "two"},
	} {
		row.do()
		if changed, err := c.Reload(); changed != row.changed || (err != nil) != row.fails || c.Get() != row.want {
			t.Errorf("step %d: changed %t, %v, content %q; want %t and %q", i, changed, err, c.Get(), row.changed, row.want)
		}
	}
	_ = os.Remove(path)
	must.Do(t, syscall.Mkfifo(path, 0o600))
	r := must.Get(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))(t)
	defer r.Close()
	write("text") // and closes the writing end
	if c = must.Get(Open(parse, path, ""))(t); c.Get() != "text" {
		t.Fatalf("a pipe: %q", c.Get())
	}
	if changed, err := c.Reload(); err != nil || changed {
		t.Errorf("a pipe that was read: changed %t, %v", changed, err)
	}
}
