package httpapi

import (
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/service"
)

func TestNewStaticErrors(t *testing.T) {
	for _, c := range []service.StaticConfig{
		{Node: 1024},
		{Layout: firn.MustParseLayout("xid")},
		{Options: &firn.Options{MaxAhead: -1}},
		{Layout: firn.MustParseLayout("uuidv7"), Node: 1 << 16},
	} {
		if _, err := service.NewStatic(c); err == nil {
			t.Errorf("NewStatic(%+v): no error", c)
		}
	}
}
