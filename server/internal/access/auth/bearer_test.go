package auth

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestBearer: the token is read again; a file that is gone or empty leaves the
// previous one, and each change to that is reported once.
func TestBearer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "member")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("firn_a\n")
		var log []string
		f, err := OpenBearer(path, func(text string) { log = append(log, text) })
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			text, want string
			lines      int
		}{{"firn_a", "firn_a", 0}, {"firn_b\n", "firn_b", 0}, {"", "firn_b", 1}, {"", "firn_b", 1}, {" \n", "firn_b", 2}, {"firn_c", "firn_c", 2}, {"", "firn_c", 3}} {
			write(row.text)
			time.Sleep(tokenEvery)
			if got := f.Token(); got != row.want || len(log) != row.lines {
				t.Errorf("%q in the file: token %s, want %s; the log says %q", row.text, got, row.want, log)
			}
		}
	})
}
