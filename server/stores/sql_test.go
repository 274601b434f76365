//go:build !firn_local

package stores

import (
	"fmt"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

// TestPorts: a host without a port has PostgreSQL's, not that of another host
// or of the environment.
func TestPorts(t *testing.T) {
	t.Setenv("PGPORT", "6432")
	u := must.Get(parse("postgres://firn@a,b:5433,[::1]/d"))(t)
	c, _, err := configPostgreSQL(u)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		if f.TLSConfig == nil { // each host again, without TLS
			got += fmt.Sprint(" ", f.Host, f.Port)
		}
	}
	if want := "a5432 a5432 b5433 ::15432"; got != want {
		t.Errorf("connects to %s, want %s", got, want)
	}
}
