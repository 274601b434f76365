package firn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firnid/firn/internal/test/must"
)

func TestParseLayout(t *testing.T) {
	for in, want := range map[string]string{
		"default":                     "default",
		"default,epoch=1767225600000": "default",
		"default,epoch=2026-01-01T01:00:00+01:00":                         "default",
		"default,epoch=2020-01-01T00:00:00Z":                              "default,epoch=2020-01-01T00:00:00Z",
		"default,epoch=1":                                                 "default,epoch=1",
		"flake-idgen,epoch=1300000000000":                                 "flake-idgen,epoch=2011-03-13T07:06:40Z",
		"flake-idgen,epoch=-1":                                            "flake-idgen,epoch=-1",
		"hazelcast,node-bits=16,seq-bits=6":                               "hazelcast",
		"hazelcast,seq-bits=12,node-bits=10,epoch=2020-01-01T00:00:00Z":   "hazelcast,node-bits=10,seq-bits=12,epoch=2020-01-01T00:00:00Z",
		"hazelcast,node-bits=0,seq-bits=0":                                "hazelcast,node-bits=0,seq-bits=0",
		"snowcast,nodes=300,epoch=0":                                      "snowcast,nodes=512,epoch=1970-01-01T00:00:00Z",
		"snowcast,nodes=128":                                              "snowcast,nodes=128",
		"lable,mode=time-sequential,cluster=3":                            "lable,mode=time-sequential,cluster=3",
		"bits=time:41.node:10.seq:12":                                     "bits=time:41.node:10.seq:12,unit=1ms,epoch=1970-01-01T00:00:00Z",
		"bits=time~:8.const:4=0xf.time:2.rand:100,unit=1m":                "bits=time~:8.const:4=15.time:2.rand:100,unit=1m0s,epoch=1970-01-01T00:00:00Z",
		"bits=node:3.time:4.node:5.seq:62.time:50,epoch=0,unit=100ns":     "bits=node:3.time:4.node:5.seq:62.time:50,unit=100ns,epoch=1970-01-01T00:00:00Z",
		"bits=time:1.const:64=18446744073709551615,unit=1ms,epoch=946684": "bits=time:1.const:64=18446744073709551615,unit=1ms,epoch=946684",
	} {
		l, err := ParseLayout(in)
		if err != nil || l.String() != want {
			t.Errorf("ParseLayout(%q) = %v, %v, want %v", in, l, err, want)
		}
	}
}

func TestParseLayoutFaults(t *testing.T) {
	for in, want := range map[string][]string{
		"":                              {`unknown preset ""`, "default"},
		"snowflake":                     {`unknown preset "snowflake"`, "twitter"},
		"default ":                      {`unknown preset "default "`},
		"default,":                      {"key=value"},
		"default,epoch":                 {"key=value"},
		"default,epoch=1,epoch=2":       {"given twice"},
		"default,unit=1ms":              {`unknown key "unit": use epoch, even, node-bits, seq-bits`},
		"default,epoch=2026-01-01":      {"neither Unix milliseconds nor a time"},
		"default,epoch=300000000000000": {"outside the years 1 to 9999"},
		"default,epoch=-62135596800001": {"outside the years"},
		"default,epoch=2026-01-01T00:00:00.0001Z":    {"not a whole number of milliseconds"},
		"hazelcast,node-bits=40,seq-bits=23":         {`seq-bits is "23"`, "0 to 22"},
		"hazelcast,node-bits=63,seq-bits=-1":         {`node-bits is "63"`},
		"snowcast,nodes=127":                         {"128 to 8192"},
		"lable,mode=fast":                            {`mode is "fast"`},
		"lable,cluster=16":                           {`cluster is "16"`},
		"bits=":                                      {"key=value"},
		"bits=time":                                  {`width of field time is ""`},
		"bits=time:41.node:10.seq:+2":                {`width of field seq is "+2"`},
		"bits=time:41.node:65":                       {"0 to 64"},
		"bits=seq:12":                                {"no time field"},
		"bits=time:64.node:64.seq:2":                 {"130 bits", "remove 2 to fit 128", "66 to fit 64"},
		"bits=time:40.time:40":                       {"time has a total of 80 bits"},
		"bits=time:40.seq:63":                        {"seq has a total of 63 bits, more than 62"},
		"bits=time:41.seq~:2":                        {"only time can"},
		"bits=time:41.const:2":                       {"const:width=value"},
		"bits=time:41.const:2=4":                     {"0 to 3"},
		"bits=time:41.node:2=1":                      {"const:width=value"},
		"bits=time:41.worker:2":                      {`unknown field "worker"`},
		"bits=time:64,unit=24h":                      {"exceed what a time can represent"},
		"bits=time:41,unit=0s":                       {"more than 0"},
		"bits=time:41,unit=1":                        {"not a duration"},
		"bits=time:41,unit=25h":                      {"24h0m0s"},
		"bits=time:8" + strings.Repeat(".seq:1", 16): {"more than 16 fields"},
	} {
		l, err := ParseLayout(in)
		var p *ParseError
		if !errors.As(err, &p) || l != (Layout{}) {
			t.Errorf("ParseLayout(%q) = %v, %v, want a ParseError", in, l, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("ParseLayout(%q): %v, want it to say %q", in, err, w)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseLayout(%q): the error has more than one line: %v", in, err)
		}
	}
}

func TestDecomposeChecksConstants(t *testing.T) {
	for layout, ids := range map[string]map[uint64]string{
		"default":         {1 << 63: "bit 63 must be zero"},
		"js53":            {1 << 53: "bits 63..53 must be zero"},
		"lable,cluster=3": {0x1003: "the mode (bit 12) is 1, not 0", 0x0004: "the cluster (bits 3..0) is 4, not 3"},
	} {
		for id, want := range ids {
			if p, err := MustParseLayout(layout).Decompose(ID(id)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Decompose(%#x) = %v, %v, want an error with %q", layout, id, p, err, want)
			}
		}
	}
	uuid4 := ID128{6: 0x40, 8: 0x80}
	if _, err := MustParseLayout("uuidv7").Decompose128(uuid4); err == nil || !strings.Contains(err.Error(), "the version (bits 79..76) is 4, not 7") {
		t.Errorf("Decompose128 of a UUIDv4: %v", err)
	}
}

// Real IDs of formats without vectors, from their own documentation.
func TestDecomposeBytes(t *testing.T) {
	for _, test := range []struct {
		layout string
		bytes  []byte
		want   Parts
	}{
		// From the README of rs/xid: 9m4e2mr0ui3e8a215n4g.
		{"xid", []byte{0x4d, 0x88, 0xe1, 0x5b, 0x60, 0xf4, 0x86, 0xe4, 0x28, 0x41, 0x2d, 0xc9},
			Parts{time.Unix(1300816219, 0).UTC(), 0x60f486e428, 0x412dc9}},
		// From the manual of MongoDB: ObjectId("507f1f77bcf86cd799439011").
		{"objectid", []byte{0x50, 0x7f, 0x1f, 0x77, 0xbc, 0xf8, 0x6c, 0xd7, 0x99, 0x43, 0x90, 0x11},
			Parts{time.Unix(0x507f1f77, 0).UTC(), 0xbcf86cd799, 0x439011}},
		// From the README of Segment's ksuid: 0ujtsYcgvSTl8PAuAdqWYSMnLOv,
		// 107608047 s, 2017-10-09T21:00:47-07:00.
		{"ksuid", append([]byte{0x06, 0x69, 0xf7, 0xef}, make([]byte, 16)...),
			Parts{time.Date(2017, 10, 10, 4, 0, 47, 0, time.UTC), 0, 0}},
	} {
		l := MustParseLayout(test.layout)
		if got, err := l.DecomposeBytes(test.bytes); err != nil || got != test.want {
			t.Errorf("%s: DecomposeBytes(%x) = %v, %v, want %v", test.layout, test.bytes, got, err, test.want)
		}
		if _, err := l.DecomposeBytes(test.bytes[1:]); err == nil {
			t.Errorf("%s: DecomposeBytes took %d bytes", test.layout, len(test.bytes)-1)
		}
	}
}

func TestRangeErrors(t *testing.T) {
	l := MustParseLayout("sonyflake") // ticks of 10 ms
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	for want, r := range map[string][2]time.Time{
		"the range is empty":       {at(1), at(1)},
		"it begins at":             {at(2), at(1)},
		"no tick of 10ms begins":   {at(1), at(9)},
		"before the epoch":         {l.Epoch().AddDate(-2, 0, 0), l.Epoch()},
		"after the last tick":      {l.Last().Add(10 * time.Millisecond), l.Last().AddDate(1, 0, 0)},
		"last tick of layout sony": {l.Last().Add(1), l.Last().AddDate(1, 0, 0)},
	} {
		if lo, hi, err := l.Range(r[0], r[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Range(%v, %v) = %v, %v, %v, want an error with %q", r[0], r[1], lo, hi, err, want)
		}
	}
	if _, _, err := MustParseLayout("lable").Range(at(0), at(10)); err == nil || !strings.Contains(err.Error(), "not ordered by time") {
		t.Errorf("Range of lable: %v", err)
	}
	// Constants and random bits: the standard form of the lowest and the
	// highest UUIDv7.
	lo, hi, err := MustParseLayout("uuidv7").Range128(time.UnixMilli(0x018bcfe56800), time.UnixMilli(0x018bcfe56801))
	if err != nil || lo.String() != "018bcfe5-6800-7000-8000-000000000000" || hi.String() != "018bcfe5-6800-7fff-bfff-ffffffffffff" {
		t.Errorf("Range128 of uuidv7 = %v, %v, %v", lo, hi, err)
	}
}

// TestCheckTime: CheckTime says what a generator does in the first and the last
// tick, and beside them.
func TestCheckTime(t *testing.T) {
	layout := MustParseLayout("bits=time:31.node:10.seq:10,unit=10ms,epoch=2026-01-01T00:00:00Z")
	for _, row := range []struct {
		now  time.Time
		want error
	}{
		{layout.Epoch().Add(-1), ErrBeforeEpoch}, {layout.Epoch(), nil}, {layout.End().Add(-1), nil}, {layout.End(), ErrTimeOver},
	} {
		g := must.Get(NewGenerator(layout, Grant{Node: 1, From: layout.Epoch()}, &Options{Now: func() time.Time { return row.now }}))(t)
		_, err := g.TryNext()
		if said := (Layout{}).CheckTime(row.now); said == nil || !strings.Contains(said.Error(), "zero Layout") {
			t.Errorf("CheckTime of the zero Layout: %v", said)
		}
		if said := layout.CheckTime(row.now); !errors.Is(err, row.want) || !errors.Is(said, row.want) {
			t.Errorf("at %v: %v, and CheckTime %v; want %v", row.now, err, said, row.want)
		}
	}
}

// TestCheckGenerator: CheckGenerator says whether NewGenerator makes one.
func TestCheckGenerator(t *testing.T) {
	layouts := []Layout{{}, MustParseLayout("bits=time~:53.seq:11"), MustParseLayout("bits=time~:52.seq:11.node:1"),
		MustParseLayout("bits=time:34.seq:30,unit=1ms"), MustParseLayout("bits=time:64.seq:61.node:3,unit=1ms")}
	for p := range Presets() {
		layouts = append(layouts, p.Layout)
	}
	for _, l := range layouts {
		_, err := NewGenerator(l, Grant{Until: l.Epoch().Add(time.Hour)}, nil)
		if l.Bits() == 128 {
			_, err = NewGenerator128(l, Grant{Until: l.Epoch().Add(time.Hour)}, nil)
		}
		if said := l.CheckGenerator(); (said == nil) != (err == nil) {
			t.Errorf("%v: CheckGenerator %v, and NewGenerator %v", l, said, err)
		}
	}
}
