package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/grant"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/server/internal/ids/form"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestFree wants a block without used node IDs, and no larger one.
func TestFree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bits := r.IntN(7)
		l := firn.MustParseLayout(fmt.Sprintf("bits=time:41.node:%d.seq:12", bits))
		var report Report
		free := make([]bool, 1<<bits)
		for node := range free {
			if free[node] = r.IntN(1<<bits) > 2; !free[node] {
				report.Nodes = append(report.Nodes, uint64(node))
			}
		}
		if len(report.Nodes) == 0 {
			report.Nodes, free[0] = []uint64{0}, false
		}
		best := 0
		for size := 1; size <= len(free)/2; size *= 2 {
			for lo := 0; lo < len(free); lo += size {
				if len(report.UsedIn(uint64(lo), uint64(lo+size-1))) == 0 {
					best = size
				}
			}
		}
		lo, hi, ok := report.Free(l)
		if !ok && best > 0 || ok && (int(hi-lo)+1 != best || len(report.UsedIn(lo, hi)) > 0 || hi > l.MaxNode()) {
			t.Fatalf("nodes %v of %d: %d..%d %t, want a block of %d", report.Nodes, len(free), lo, hi, ok, best)
		}
	}
}

func TestShadow(t *testing.T) {
	l := firn.MustParseLayout("twitter")
	at := func(ms int, node uint64) firn.ID {
		return must.Get(l.Compose(firn.Parts{Time: noon.Add(time.Duration(ms) * time.Millisecond), Node: node}))(t)
	}
	s := NewShadow(grant.Info{Config: grant.Config{Layout: l, Nodes: &grant.NodeRange{Lo: 512, Hi: 1023}}, Created: noon.Add(-time.Hour), Floor: noon}, form.Form{})
	old := func(id firn.ID, want Contact) {
		t.Helper()
		if _, got, err := s.Old(id.String()); got != want || err != nil {
			t.Errorf("the old %v is %q, %v; want %q", id, got, err, want)
		}
	}
	s.New(at(1, 600))
	old(at(1, 5), None)
	old(at(1, 5), None) // its own duplicates are its own business
	old(at(1, 600), Equal)
	old(at(2, 600), Within)
	old(at(-1, 600), None)
	if got := s.New(at(2, 600)); got != Equal {
		t.Errorf("a new ID that the other generator made before is %q, want %q", got, Equal)
	}
	for i := range 2 * remembered {
		s.New(at(3+i, 700))
	}
	if len(s.isNew) != remembered {
		t.Errorf("%d IDs are remembered, want %d", len(s.isNew), remembered)
	}
	old(at(3, 700), Within)
	old(at(2+2*remembered, 700), Equal)
	if _, _, err := s.Old("12x4"); err == nil {
		t.Error("12x4 is read as an ID")
	}
}

// TestMoving reads IDs of real libraries by the layouts of docs/moving.md.
func TestMoving(t *testing.T) {
	page := must.Get(os.ReadFile("../../../../docs/moving.md"))(t)
	vectors := must.Get(os.ReadFile("testdata/moving.txt"))(t)
	table, _, _ := strings.Cut(string(page), "\n## ")
	rows := regexp.MustCompile("(?m)^\\| (.*) \\| `([^`]+)` \\|$").FindAllStringSubmatch(table, -1)
	tested := make(map[string]bool)
	for line := range strings.Lines(string(vectors)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		name := strings.ReplaceAll(f[0], "_", " ")
		for _, row := range rows {
			if !strings.Contains(row[1], name) {
				continue
			}
			tested[row[1]] = true
			l := must.Get(firn.ParseLayout(row[2]))(t)
			id := must.Get(firn.ParseID(f[3]))(t)
			p, err := l.Decompose(id)
			made, _ := strconv.ParseInt(f[1], 10, 64)
			if err != nil || fmt.Sprint(p.Node) != f[2] || p.Time.Sub(time.UnixMilli(made)).Abs() > 2*time.Second {
				t.Errorf("%s: %s is of %v and node ID %d, %v; want %v and %s", name, f[3], p.Time, p.Node, err, time.UnixMilli(made).UTC(), f[2])
			}
		}
	}
	for _, row := range rows {
		if !tested[row[1]] && !strings.Contains(row[1], "from its source") {
			t.Errorf("%s has no ID in testdata/moving.txt", row[1])
		}
	}
	if len(rows) != 15 {
		t.Errorf("%d layouts, want 15", len(rows))
	}
}
