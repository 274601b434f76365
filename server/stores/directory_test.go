package stores

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/dirstore"
	"github.com/firnid/firn/grant/memstore"
)

// TestDirWords: no error of a directory names an option of the package, which
// users of the program do not have.
func TestDirWords(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	type row struct {
		path, want string
		is         error
	}
	rows := []row{
		{filepath.Join(dir, "none") + "?volatile=true", "?create=true creates it", dirstore.ErrNoStore},
		{filepath.Join(dir, "empty") + "?volatile=true", "?create=true creates it", dirstore.ErrNoStore},
	}
	if runtime.GOOS == "linux" {
		rows = append(rows, row{"/proc/x?create=true&volatile=true", "local disk", dirstore.ErrFileSystem})
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && runtime.GOOS == "linux" {
		rows = append(rows, row{"/dev/shm/firn-none", "add ?volatile=true", dirstore.ErrFileSystem})
	}
	for _, r := range rows {
		_, err := Open(t.Context(), "dir:"+r.path)
		if err == nil || !errors.Is(err, r.is) || !strings.Contains(err.Error(), r.want) {
			t.Errorf("dir:%s: %v, want %q", r.path, err, r.want)
			continue
		}
		for _, option := range []string{"Options", "AllowVolatile"} {
			if strings.Contains(err.Error(), option) {
				t.Errorf("dir:%s: %v names %s", r.path, err, option)
			}
		}
	}
}

// TestOpenDirOfHang opens a directory whose disk does not answer at first.
func TestOpenDirOfHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		late := new(memstore.Store)
		begin := time.Now()
		s, err := inTime(t.Context(), "/data/firn", func() (grant.Store, error) { <-answers; return late, nil })
		if s != nil || err == nil || !strings.Contains(err.Error(), "open /data/firn: the disk has not answered in time") {
			t.Errorf("opened %v, %v, want that the disk has not answered", s, err)
		}
		if took := time.Since(begin); took != openDirTime {
			t.Errorf("it took %v, want %v", took, openDirTime)
		}
		close(answers)
		synctest.Wait()
		if _, err := late.Get(t.Context(), "k"); !errors.Is(err, grant.ErrNotSent) {
			t.Errorf("Get of what was opened too late = %v, want that it is closed", err)
		}
	})
}
