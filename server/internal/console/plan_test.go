package console

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn"
	"github.com/firnid/firn/server/internal/ids/inspect"
)

// TestPlanned: a plan with a preset's widths is that preset, and what it says
// is what the layout says.
func TestPlanned(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, name := range planStarts {
		l := firn.MustParseLayout(name)
		u, err := url.Parse(planLink(l))
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		p := planPage{Unit: q.Get("unit"), Epoch: q.Get("epoch"), Low: q.Get("low")}
		for key, to := range map[string]*int{"time": &p.Time, "node": &p.Node, "seq": &p.Seq} {
			if *to, err = strconv.Atoi(q.Get(key)); err != nil {
				t.Fatal(err)
			}
		}
		p.Total = p.Time + p.Node + p.Seq
		m, err := p.make(now)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Text != name {
			t.Errorf("the plan of %s is %s", name, m.Text)
		}
		if m.Second != count(l.IDsPerSecond()) || m.Nodes != power(l.NodeBits()) || !m.Last.Equal(l.Last()) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, row := range []struct {
		p    planPage
		text string // of the layout, or of the fault
		js   bool
		sign bool
	}{
		{planPage{Time: 41, Node: 5, Seq: 7}, "js53", true, true},
		{planPage{Time: 42, Node: 10, Seq: 12}, "bits=time:42.node:10.seq:12", false, true}, // negative from 2095 on
		{planPage{Time: 40, Node: 10, Seq: 14}, "bits=time:40.node:10.seq:14", false, false},
		{planPage{Time: 43, Node: 10, Seq: 12}, "1 too many", false, false},
		{planPage{Node: 10, Seq: 12}, "needs time bits", false, false},
		{planPage{Time: 41}, "bits=time:41", true, true},
		{planPage{Time: 41, Epoch: "yesterday"}, "epoch", false, false},
	} {
		p := row.p
		p.Total, p.Unit = p.Time+p.Node+p.Seq, "1ms"
		if p.Epoch == "" {
			p.Epoch = "2026-01-01"
		}
		m, err := p.make(now)
		if err != nil {
			if !strings.Contains(err.Error(), row.text) {
				t.Errorf("%+v: %v, want %q", row.p, err, row.text)
			}
			continue
		}
		if !strings.HasPrefix(m.Text, row.text) || m.JS.Good != row.js || m.Sign.Good != row.sign {
			t.Errorf("%+v: %s, JavaScript %+v, sign %+v", row.p, m.Text, m.JS, m.Sign)
		}
	}
}

// TestBetween: the condition of SQL has all IDs of the range and no others.
func TestBetween(t *testing.T) {
	for _, name := range []string{"default", "hazelcast", "uuidv7", "js53", "boundary"} {
		p := betweenPage{From: "2026-11-20T10:00", To: "2026-11-20T11:00", Layout: name, Column: "orders.id"}
		f, err := p.find()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l := firn.MustParseLayout(name)
		format := firn.Decimal
		if l.Bits() == 128 {
			format = firn.UUID
		}
		want, err := inspect.EndsOf(l, time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), format)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(f.SQL, want.Lo) || !strings.Contains(f.SQL, want.Hi) || !strings.HasPrefix(f.SQL, "WHERE orders.id BETWEEN ") {
			t.Errorf("%s: %s, want %+v", name, f.SQL, want)
		}
		if (l.Bits() == 128) != strings.Contains(f.SQL, "'") {
			t.Errorf("%s: %s: texts have quotes, and numbers none", name, f.SQL)
		}
		if f.Long != "60 minutes" {
			t.Errorf("%s: an hour is %q", name, f.Long)
		}
	}
	for _, p := range []betweenPage{
		{From: "x", To: "2026-11-20", Layout: "default", Column: "id"},
		{From: "2026-11-21", To: "2026-11-20", Layout: "default", Column: "id"},
		{From: "2026-11-20", To: "2026-11-21", Layout: "nonsense", Column: "id"},
		{From: "2026-11-20", To: "2026-11-21", Layout: "xid", Column: "id"},
		{From: "2026-11-20", To: "2026-11-21", Layout: "default", Column: "id; DROP TABLE orders"},
		{From: "1999-11-20", To: "1999-11-21", Layout: "default", Column: "id"},
	} {
		if f, err := p.find(); err == nil {
			t.Errorf("%+v: %+v, want an error", p, f)
		}
	}
}
