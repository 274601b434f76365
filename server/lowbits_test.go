package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant/memstore"
)

// TestLowBits: the setting reaches sequencers that are created by using them:
// at one ID per tick, IDs have all low bits, and not 0 alone.
func TestLowBits(t *testing.T) {
	var clock atomic.Int64
	clock.Store(time.Now().UnixMilli())
	c := Config{Store: new(memstore.Store)}
	c.Sequencers.Layout, c.Sequencers.LowBits = firn.Default(), 4
	c.Sequencers.Now = func() time.Time { return time.UnixMilli(clock.Load()) }
	_, address := served(t, c)
	seen := make(map[firn.ID]bool)
	for range 1000 { // one of 16 is missing less than once in 10^26 runs
		clock.Add(1)
		resp, err := http.Post("http://"+address+"/v1/sequencers/orders/next?format=dec", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		id, err := firn.ParseID(strings.Trim(string(body), "{\"ids:[]}\n"))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		seen[id%16] = true
	}
	if len(seen) != 16 {
		t.Errorf("IDs have %d different low bits, want 16", len(seen))
	}
}
