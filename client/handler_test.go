package client_test

import (
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/client"
	"github.com/firnid/firn/client/clienttest"
	"github.com/firnid/firn/internal/test/must"
)

func init() {
	client.NewTestHandler = func(t testing.TB, node uint64, layout string) client.TestHandler {
		t.Helper()
		l := firn.MustParseLayout(layout)
		return must.Get(clienttest.NewHandler(&clienttest.Options{Node: min(node, l.MaxNode()), Layout: l}))(t)
	}
}
