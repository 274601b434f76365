package grant

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestRecordLimits: limits that are accepted, values one step further that are
// damage, and the reasons.
func TestRecordLimits(t *testing.T) {
	const (
		year   = "31622400000"
		config = `{"v":3,"layout":"default","max_ahead":1000,"window":60000,"longest_window":` + year + `,"state":"attached","incarnation":1,"floor":null,"created":0,"nonce":"n","nodes":[2,7],"moved_to":"etcd://a","prefix":"o_o","changed":{"what":"fence","by":"ops","at":5}}`
		node   = `{"v":3,"nonce":"n","owner":"o","until":100,"wall":90,"state":"held","host":"h","from":50,"over":{"until":40,"nonce":"m"},"gap":[10,100],"spoiled":[100,110]}`
		node1  = `{"v":3,"nonce":"n","owner":"o","until":100,"wall":90,"state":"held","host":"h"}`
	)
	more := fmt.Sprint(maxWindow.Milliseconds() + 1)
	end, past := fmt.Sprint(maxTime), fmt.Sprint(maxTime+1)
	for _, tt := range []struct{ text, old, next, damage string }{
		{config, "", "", ""},
		{node, "", "", ""},
		{node1, "", "", ""},
		{config, `"v":3`, `"v":null`, "its version is"},
		{config, `"v":3`, `"v":3.0`, "its version is"},
		{config, `"v":3`, `"v":"3"`, "its version is"},
		{config, `"v":3`, `"v":-100000000000000000000`, "its version is"},
		{config, `"v":3,`, ``, "its version is"},
		{node, `"v":3`, `"v":0`, "its version is"},
		{config, `"v":3`, `"v":2`, "its version is \"2\", and only version 3 is read"},
		{config, `"longest_window":` + year, `"longest_window":60000`, ""},
		{config, `"longest_window":` + year, `"longest_window":59999`, "longest_window is shorter"},
		{config, `"longest_window":` + year, `"longest_window":` + more, "out of range"},
		{config, `"longest_window":` + year + `,`, ``, "longest_window is shorter"},
		{config, `[2,7]`, `[7,7]`, ""},
		{config, `[2,7]`, `[0,18446744073709551615]`, ""},
		{config, `[2,7]`, `[8,7]`, "nodes is not a range"},
		{config, `[2,7]`, `[]`, "nodes is not a range"},
		{config, `[2,7]`, `[7]`, "nodes is not a range"},
		{config, `[2,7]`, `[2,5,7]`, "nodes is not a range"},
		{config, `[2,7]`, `[-2,7]`, "nodes"},
		{config, `[2,7]`, `"2..7"`, "nodes"},
		{config, `etcd://a`, strings.Repeat("~", 512), ""},
		{config, `etcd://a`, strings.Repeat("a", 513), "moved_to is not"},
		{config, `etcd://a`, `etcd:// a`, "moved_to is not"},
		{config, `etcd://a`, `etcd://ä`, "moved_to is not"},
		{config, `etcd://a`, `\u001b[1m`, "moved_to is not"},
		{config, `"o_o"`, `"` + strings.Repeat("o", 63) + `"`, ""},
		{config, `"o_o"`, `"` + strings.Repeat("o", 64) + `"`, "has 64 characters"},
		{config, `"o_o"`, `"o_"`, "ends with an underscore"},
		{config, `"layout":"default"`, `"layout":"default,even=10"`, ""},
		{config, `"layout":"default"`, `"layout":"default,even=11"`, "not a number from 0 to 10"},
		{config, `"window":60000`, `"window":` + year, ""},
		{config, `"window":60000`, `"window":` + more, "out of range"},
		{config, `"window":60000`, `"window":9223372036854775807`, "out of range"}, // as a time.Duration it is -1 ms
		{config, `"max_ahead":1000`, `"max_ahead":30000`, ""},
		{config, `"max_ahead":1000`, `"max_ahead":30001`, "at least"},
		{config, `"max_ahead":1000`, `"max_ahead":18446744073709`, "out of range"},
		{config, `"max_ahead":1000`, `"max_ahead":-1`, "max-ahead"},
		{config, `"state":"attached",`, ``, `state is ""`},
		{config, `"incarnation":1`, `"incarnation":0`, "no incarnation"},
		{config, `"nonce":"n"`, `"nonce":""`, "no nonce"},
		{config, `"floor":null`, `"floor":` + end, ""},
		{config, `"floor":null`, `"floor":` + past, "time is out of range"},
		{config, `"floor":null`, `"floor":-` + end, ""},
		{config, `"floor":null`, `"floor":-` + past, "time is out of range"},
		{config, `"created":0`, `"created":` + past, "time is out of range"},
		{config, `"created":0`, `"created":-` + end, ""},
		{config, `"default"`, `"nonsense"`, "nonsense"},
		{config, `"at":5}}`, `"at":5}}{}`, "data after"},
		{config, `"fence"`, `"` + strings.Repeat("~", maxWhat) + `"`, ""},
		{config, `"fence"`, `"` + strings.Repeat("~", maxWhat+1) + `"`, "changed is not"},
		{config, `"fence"`, `""`, "changed is not"},
		{config, `"fence"`, `"a b"`, "changed is not"},
		{config, `"ops"`, `"` + strings.Repeat("ä", maxBy/2) + `"`, ""},
		{config, `"ops"`, `"` + strings.Repeat("ä", maxBy/2) + `."`, "changed is not"},
		{config, `"at":5`, `"at":` + end, ""},
		{config, `"at":5`, `"at":` + past, "changed is not"},
		{config, `"at":5`, `"at":5,"how":"so"`, "how"},
		{config, `"nonce"`, `"nunce"`, "nunce"},
		{node1, `"until":100`, `"until":` + end, ""},
		{node1, `"until":100`, `"until":` + past, "time is out of range"},
		{node1, `"until":100`, `"until":-` + end, ""},
		{node1, `"wall":90`, `"wall":-` + past, "time is out of range"},
		{node1, `"wall":90`, `"wall":` + end, ""},
		{node1, `"wall":90`, `"wall":` + past, "time is out of range"},
		{node1, `"held"`, `"open"`, `state is "open"`},
		{node1, `"nonce":"n"`, `"nonce":""`, "no nonce"},
		{node1, `"host"`, `"hast"`, "hast"},
		{node, `"from":50`, `"from":100`, ""},
		{node, `"from":50`, `"from":101`, "from is out of range"},
		{node, `"from":50`, `"from":null`, ""},
		{node, `"from":50`, `"from":-` + end, ""},
		{node, `"from":50`, `"from":-` + past, "from is out of range"},
		{node, `"from":50,`, ``, ""},
		{node, `"nonce":"m"`, `"nonce":""`, "over is not"},
		{node, `{"until":40,`, `{`, ""},
		{node, `{"until":40,`, `{"until":` + past + `,`, "over is not"},
		{node, `{"until":40,`, `{"until":40,"owner":"o",`, "owner"},
		{node, `[10,100]`, `[10,101]`, "gap ends above until"},
		{node, `[10,100]`, `[99,100]`, ""},
		{node, `[10,100]`, `[100,100]`, "gap is not a span"},
		{node, `[10,100]`, `[100,99]`, "gap is not a span"},
		{node, `[10,100]`, `[-` + end + `,100]`, ""},
		{node, `[10,100]`, `[-` + past + `,100]`, "gap is not a span"},
		{node, `[10,100]`, `[10]`, "2 numbers"},
		{node, `[10,100]`, `[10,20,30]`, "2 numbers"},
		{node, `[10,100]`, `[10,"x"]`, "string"},
		{node, `[100,110]`, `[99,110]`, "spoiled begins below until"},
		{node, `[100,110]`, `[100,` + end + `]`, ""},
		{node, `[100,110]`, `[100,` + past + `]`, "spoiled is not a span"},
		{node, `[100,110]`, `[110,110]`, "spoiled is not a span"},
		{node, `"spoiled":[100,110]`, `"spoiled":null`, "2 numbers"},
		{node, `"wall"`, `wall`, "not JSON"},
		{node, `"wall":90`, `"wall":"90"`, "wall"},
		{node, `[100,110]}`, `[100,`, "not JSON"},
		{node, `[100,110]}`, `[100,110]}]]] cut`, "data after"},
	} {
		text := strings.Replace(tt.text, tt.old, tt.next, 1)
		if tt.old != "" && text == tt.text {
			t.Fatalf("%s is not in %s", tt.old, tt.text)
		}
		var err error
		if tt.text == config {
			_, err = decodeInfo("v1/s/config", []byte(text))
		} else {
			_, err = decodeNode("v1/s/n/1", []byte(text))
		}
		switch {
		case tt.damage == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case tt.damage != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tt.damage) || !strings.Contains(err.Error(), "v1/s/")):
			t.Errorf("%s: %v, want damage with the key and %q", text, err, tt.damage)
		}
	}
	for _, v := range []string{"4", "9", "100000000000000000000"} {
		_, err := decodeNode("k", []byte(`{"v":`+v+`,"spans":[]}`))
		if want := fmt.Sprintf("k has version %s, this program knows %d", v, version); !errors.Is(err, ErrNewerVersion) || !strings.Contains(err.Error(), want) {
			t.Errorf("a newer record: %v, want %q", err, want)
		}
	}
}

// TestMs: times are rounded up, so that no window takes more than it was given.
func TestMs(t *testing.T) {
	for _, v := range []int64{-maxTime, -1001, -1, 0, 1, 1_795_132_800_000, maxTime} {
		at := time.UnixMilli(v)
		for by, want := range map[time.Duration]int64{0: v, 1: v + 1, time.Millisecond - 1: v + 1, -1: v, -time.Millisecond: v - 1} {
			if got := ms(at.Add(by)); got != want {
				t.Errorf("ms(%d ms and %v) = %d, want %d", v, by, got, want)
			}
		}
		if got := timeOf(v); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("timeOf(%d) = %v", v, got)
		}
	}
	if got := timeOf(never); !got.IsZero() {
		t.Errorf("timeOf(Never) = %v", got)
	}
}

// TestNodeOf: the node ID of every key that nodeKey makes, and errors for other
// keys.
func TestNodeOf(t *testing.T) {
	for _, most := range []uint64{0, 9, 10, 1023, 1<<64 - 1} {
		for _, node := range []uint64{0, most / 2, most} {
			key := nodeKey("s", node, most)
			if got, err := nodeOf("s", key); got != node || err != nil {
				t.Errorf("nodeOf(%q) = %d, %v", key, got, err)
			}
		}
	}
	if key := nodeKey("s", 42, 1023); key != "v1/s/n/0042" {
		t.Errorf("nodeKey = %q", key)
	}
	for _, bad := range []string{"v1/t/n/1", "v1/s/n/", "v1/s/n/x", "v1/s/n/99999999999999999999"} {
		if _, err := nodeOf("s", bad); !errors.Is(err, ErrDamaged) {
			t.Errorf("nodeOf(%q) = %v, want ErrDamaged", bad, err)
		}
	}
}

// TestCheckName: exactly the documented characters are valid, and
// errors contain the position.
func TestCheckName(t *testing.T) {
	for n, good := range map[int]bool{0: false, 1: true, maxName: true, maxName + 1: false} {
		name := strings.Repeat("x", n)
		if err := CheckName(name); (err == nil) != good || good && CheckKey(nodeKey(name, 1<<48-1, 1<<48-1)) != nil {
			t.Errorf("CheckName of %d characters = %v", n, err)
		}
	}
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for c := range 256 {
		for i, name := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}), "ab" + string([]byte{byte(c)}) + "d"} {
			good := strings.IndexByte(first, byte(c)) >= 0 || i > 0 && strings.IndexByte("._-:", byte(c)) >= 0
			err := CheckName(name)
			if (err == nil) != good {
				t.Errorf("CheckName(%q) = %v", name, err)
			}
			if want := fmt.Sprintf("%q at offset %d", name[i:i+1], i); err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("CheckName(%q) = %v, want %s", name, err, want)
			}
		}
	}
}

// FuzzRecords: reading any value ends in a record or an error, and a record
// reads the same after it is written again.
func FuzzRecords(f *testing.F) {
	c := newInfo("s", testConfig("default", 30*time.Second))
	c.Created, c.nonce = timeOf(0), "n"
	f.Add(c.encode())
	greatest := lawInfo(Attached)
	greatest.MovedTo, greatest.Config.Prefix = strings.Repeat("&", maxMovedTo), strings.Repeat("a", 63)
	greatest.LastChange = Change{strings.Repeat("&", maxWhat), strings.Repeat("&", maxBy), timeOf(maxTime)}
	f.Add(greatest.encode())
	f.Add((nodeRecord{Nonce: "n", Owner: "o", Until: 7, State: nodeHeld}).encode())
	f.Add(lawNode(nil).encode())
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if r, err := decodeInfo("k", value); err == nil {
			if again, err := decodeInfo("k", r.encode()); err != nil || !reflect.DeepEqual(again, r) || len(r.encode()) > maxValue {
				t.Errorf("%s: read as %+v, written and read as %+v, %v", value, r, again, err)
			}
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewerVersion) {
			t.Errorf("decodeInfo(%s) = %v", value, err)
		}
		if r, err := decodeNode("k", value); err == nil {
			if again, err := decodeNode("k", r.encode()); err != nil || again != r {
				t.Errorf("%s: read as %+v, written and read as %+v, %v", value, r, again, err)
			}
		} else if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewerVersion) {
			t.Errorf("decodeNode(%s) = %v", value, err)
		}
	})
}
