//go:build linux || darwin

package dirstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestLiveBackup: a copy of the files of a store in use, file by file and
// without tmp+, is a store that has, for each key, a value that was confirmed
// before the copy began, or a later one.
func TestLiveBackup(t *testing.T) {
	const keys = 6
	path := t.TempDir()
	var confirmed, asked [keys]atomic.Int64
	var done atomic.Bool
	var writers sync.WaitGroup
	defer writers.Wait()
	defer done.Store(true)
	for k := range keys {
		s := open(t, path)
		writers.Go(func() {
			var old []byte
			for n := int64(1); !done.Load(); n++ {
				asked[k].Store(n)
				next := strconv.AppendInt(nil, n, 10)
				if ok, err := s.CAS(t.Context(), key(k), old, next); err != nil || !ok {
					t.Errorf("CAS: %t, %v", ok, err)
					return
				}
				confirmed[k].Store(n)
				old = next
			}
		})
	}
	for range 30 {
		var least [keys]int64
		for k := range keys {
			least[k] = confirmed[k].Load()
		}
		backup := t.TempDir()
		for _, file := range must.Get(os.ReadDir(path))(t) {
			if strings.HasPrefix(file.Name(), "tmp+") {
				continue
			}
			content := must.Get(os.ReadFile(filepath.Join(path, file.Name())))(t)
			write(t, filepath.Join(backup, file.Name()), string(content))
		}
		restored := open(t, backup)
		for k := range keys {
			value := must.Get(restored.Get(t.Context(), key(k)))(t)
			n, _ := strconv.ParseInt(string(value), 10, 64)
			if n < least[k] || n > asked[k].Load() {
				t.Errorf("key %d has %q, confirmed before the copy was %d", k, value, least[k])
			}
		}
	}
}

func key(k int) string { return fmt.Sprintf("v1/orders/n/%05d", k) }
