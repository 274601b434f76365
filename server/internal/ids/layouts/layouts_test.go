package layouts

import (
	"strconv"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
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

// TestName: layouts that differ have names that differ and that a store
// takes.
func TestName(t *testing.T) {
	seen := make(map[string]string)
	for _, text := range []string{
		"default", "default,epoch=0", "default,node-bits=8,seq-bits=14", "hazelcast", "hazelcast,epoch=0", "uuidv7",
		"bits=time:41.node:10.seq:12,unit=1ms,epoch=0", "bits=time:41.node:10.seq:12,unit=2ms,epoch=0", "lable,mode=time-sequential,cluster=3",
	} {
		l, err := firn.ParseLayout(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		name := Name(l)
		must.Do(t, grant.CheckName(name))
		if before, ok := seen[name]; ok && firn.MustParseLayout(before) != l {
			t.Errorf("%s and %s both have the name %s", before, text, name)
		}
		seen[name] = text
	}
	if got := Name(firn.Default()); got != "default" {
		t.Errorf("the name of the default is %q", got)
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 12: "12", 999: "999", 1000: "1 k", 25600: "25.6 k", 4096000: "4 M", 2.5e9: "2.5 G", 3e12: "3 T"} {
		if got := Short(x); got != want {
			t.Errorf("Short(%g) = %q, want %q", x, got, want)
		}
	}
}
