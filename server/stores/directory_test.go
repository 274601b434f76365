package stores

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/grant/memstore"
)

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
