package console

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
	"github.com/firnid/firn/server/internal/ids/inspect"
	"github.com/firnid/firn/server/internal/operate/members"
)

// TestAnatomy: for every layout and ID each bit is shown once, in order, with
// its value, and each field is explained.
func TestAnatomy(t *testing.T) {
	for preset := range firn.Presets() {
		l := preset.Layout
		x := &inspect.Reading{Layout: l, Bytes: make(form.ID, l.Bits()/8)}
		want := ""
		for i := range x.Bytes {
			x.Bytes[i] = byte(37*i + 11)
			want += fmt.Sprintf("%08b", x.Bytes[i])
		}
		a := dissect(x)
		digits, begin, end := "", 0, 0
		for i, b := range a.Bits {
			if b.Pos != l.Bits()-1-i {
				t.Errorf("%s: bit %d stands at %d", l, b.Pos, i)
			}
			digits += b.Digit
			if b.Begin {
				begin++
			}
			if b.End {
				end++
			}
		}
		if pieces := len(l.Pieces()); digits != want || begin != pieces || end != pieces {
			t.Errorf("%s: the bits are %s in %d pieces that end %d times, want %s in %d", l, digits, begin, end, want, pieces)
		}
		width := uint64(0)
		for _, f := range anatomyOf(l).Fields {
			if f.Name == "" || len(f.Detail) == 0 || !strings.Contains(a.Label, fieldName(f.Key)) {
				t.Errorf("%s: the field %s is not explained: %+v, %s", l, f.Key, f, a.Label)
			}
			width += f.Width
		}
		if width != uint64(l.Bits()) {
			t.Errorf("%s: the fields have %d bits", l, width)
		}
	}
}

// TestTooMany: of too many IDs, one more than the maximum is read.
func TestTooMany(t *testing.T) {
	if n := len(pastedIDs(strings.Repeat("1 ", 5000))); n != maxIDs+1 {
		t.Errorf("of 5000 IDs %d are taken, want %d, so that it is known that there are more", n, maxIDs+1)
	}
}

// TestMany: order, gaps and duplicates, by the layout that fits best.
func TestMany(t *testing.T) {
	l := firn.Default()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	id := func(after time.Duration, node, seq uint64) string {
		x := must.Get(l.Compose(firn.Parts{Time: now.Add(after - time.Hour), Node: node, Seq: seq}))(t)
		return x.String()
	}
	m := readMany([]string{id(0, 1, 0), id(time.Second, 2, 0), id(time.Minute, 1, 3), id(time.Second, 2, 0), id(2*time.Minute, 1, 0), "?"}, inspect.Options{Now: now})
	if want := "6 IDs: 1 duplicate, 1 out of order, 1 cannot be read"; m.Verdict != want || m.Layout != "default" || m.Fine {
		t.Errorf("%+v, want %q", m, want)
	}
	if m.Rows[3].Note != "duplicate of no. 2" || m.Rows[1].Note != "" || m.Rows[5].Note == "" {
		t.Errorf("the rows are %+v", m.Rows)
	}
}

// TestLate: a server is late if no new record of it was seen for half of the
// time that a record is valid, by the clock of the one who looks.
func TestLate(t *testing.T) {
	seen := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	record := func(at time.Time) []members.Server {
		return []members.Server{{ID: "a", Seen: at, Until: at.Add(30 * time.Second)}}
	}
	ss, now := new(snapshots), seen.Add(time.Hour) // another clock
	for _, row := range []struct {
		after time.Duration
		fresh bool
		late  bool
	}{{0, true, false}, {15 * time.Second, false, false}, {time.Millisecond, false, true}, {0, true, false}, {16 * time.Second, false, true}} {
		now = now.Add(row.after)
		if row.fresh {
			seen = seen.Add(10 * time.Second)
		}
		if m := ss.heardNow(record(seen), now)[0]; m.Late != row.late {
			t.Errorf("%+v: heard at %v, late: %t", row, m.Heard, m.Late)
		}
	}
}
