package layouts

import (
	"strconv"
	"testing"

	"github.com/firnid/firn"
)

func TestBitsBox(t *testing.T) {
	const want = "" +
		" 63                                      22 21   16 15    13   12 11     4 3  0\n" +
		"┌──────────────────────────────────────────┬───────┬────────┬────┬────────┬────┐\n" +
		"│ time~ 42                                 │ seq 6 │ node 3 │ =0 │ node 8 │ =5 │\n" +
		"└──────────────────────────────────────────┴───────┴────────┴────┴────────┴────┘\n"
	if got := Box(firn.MustParseLayout("lable,cluster=5"), func(p firn.Piece) string { return strconv.Itoa(p.Width) }); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
