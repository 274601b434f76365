package firn

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/firnid/firn/internal/test/must"
)

func TestParseNode(t *testing.T) {
	flake := MustParseLayout("flake-idgen")
	for in, want := range map[string]uint64{
		"0": 0, "1023": 1023, "datacenter=9,worker=7": 295, "worker=7,datacenter=9": 295, "worker=31": 31, "datacenter=1": 32,
	} {
		if got, err := flake.ParseNode(in); err != nil || got != want {
			t.Errorf("ParseNode(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"1024": "out of range 0..1023", "-1": "not a number from 0 to 1023; it can also be written datacenter=0..31,worker=0..31",
		"99999999999999999999": "out of range", "": "not a number", "datacenter=32": "datacenter 32 is out of range 0..31", "worker=": "0 to 31",
		"machine=1": `no node part "machine"`, "worker=1,worker=2": "given twice", "worker=1,": `no node part ""`, "worker=1,7": `"7"`,
	} {
		if got, err := flake.ParseNode(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseNode(%q) = %v, %v, want an error with %q", in, got, err, want)
		}
	}
	var r *RangeError
	if _, err := flake.ParseNode("1024"); !errors.As(err, &r) {
		t.Errorf("ParseNode(1024): %v is no RangeError", err)
	}
	if _, err := Default().ParseNode("worker=1"); err == nil {
		t.Error("the default layout has no worker")
	}
	got := flake.NodeParts(295)
	if len(got) != 2 || got[0] != (NodePart{"datacenter", 9}) || got[1] != (NodePart{"worker", 7}) {
		t.Errorf("NodeParts(295) = %v", got)
	}
	if got := flake.NodeParts(1024); got != nil {
		t.Errorf("NodeParts(1024) = %v, want nil: the greatest node ID is 1023", got)
	}
	if got := Default().NodeParts(295); len(got) != 0 {
		t.Errorf("NodeParts of default = %v", got)
	}
}

func TestNodeFromEnv(t *testing.T) {
	t.Setenv("FIRN_TEST_NODE", "17")
	if got, err := NodeFromEnv("FIRN_TEST_NODE"); got != 17 || err != nil {
		t.Errorf("got %v, %v, want 17", got, err)
	}
	for _, bad := range []string{"", " 17", "-1", "x"} {
		t.Setenv("FIRN_TEST_NODE", bad)
		if got, err := NodeFromEnv("FIRN_TEST_NODE"); !isParseError(err) || !strings.Contains(err.Error(), "FIRN_TEST_NODE") {
			t.Errorf("%q: got %v, %v, want a *ParseError that names the variable", bad, got, err)
		}
	}
	if _, err := NodeFromEnv("FIRN_TEST_NO_SUCH"); err == nil || !strings.Contains(err.Error(), "not set") {
		t.Errorf("got %v, want that it is not set", err)
	}
}

func isParseError(err error) bool {
	_, ok := errors.AsType[*ParseError](err)
	return ok
}

func TestNodeFromHostname(t *testing.T) {
	for host, want := range map[string]uint64{
		"ids-0": 0, "ids-7.ids.default.svc.cluster.local": 7, "a-b-123": 123, "a-1-2-3": 3, "ids-300-0-0-1": 1, "ids-5f7d9c-7": 7, "ids-9999": 9999,
	} {
		if got, err := NodeFromHostname(host); err != nil || got != want {
			t.Errorf("NodeFromHostname(%q) = %v, %v, want %v", host, got, err, want)
		}
	}
	for _, host := range []string{"ids", "ids7", "17", "ids-", "ids-x7", "ids-7x", "ids--", "ids.example-7", "ip-10-0-12-7", "10-0-12-7",
		"ids-5f7d9c-12345", "ids-7d4b9c6f5d-24689.ids.svc", "ids-bcdfghjklm-24568", "ids-00042"} {
		if got, err := NodeFromHostname(host); !isParseError(err) || !strings.Contains(err.Error(), host) {
			t.Errorf("NodeFromHostname(%q) = %v, %v, want a *ParseError", host, got, err)
		}
	}
}

func TestNodeFromMAC(t *testing.T) {
	for _, test := range []struct {
		mac        string
		allowLocal bool
		want       uint64
		err        string
	}{
		{"10:9a:dd:5e:0e:8f", false, 18257324936847, ""}, // from Boundary's README
		{"02:42:ac:11:00:02", false, 0, "locally administered"},
		{"02:42:ac:11:00:02", true, 0x0242ac110002, ""},
		{"00:00:00:00:00:00", true, 0, "zero"},
		{"01:00:5e:00:00:01", true, 0, "group"},
		{"02:00:5e:10:00:00:00:01", true, 0, "8 bytes, not 6"},
	} {
		mac := must.Get(net.ParseMAC(test.mac))(t)
		got, err := nodeFromMAC(mac, test.allowLocal)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s, allowLocal %v: got %#x, %v, want %#x, %q", test.mac, test.allowLocal, got, err, test.want, test.err)
		}
	}
	// The first usable address is taken, and allowLocal decides which are.
	group, local, global := net.HardwareAddr{1, 0, 0, 0, 0, 9}, net.HardwareAddr{2, 0, 0, 0, 0, 5}, net.HardwareAddr{0, 0, 0, 0, 0, 7}
	cards := []net.Interface{{Name: "lo"}, {Name: "b", HardwareAddr: group}, {Name: "l", HardwareAddr: local}, {Name: "g", HardwareAddr: global}}
	for allowLocal, want := range map[bool]uint64{false: 7, true: 2<<40 | 5} {
		if got, err := nodeFromFirst(cards, allowLocal); got != want || err != nil {
			t.Errorf("allowLocal %v: %#x, %v, want %#x", allowLocal, got, err, want)
		}
	}
	if _, err := nodeFromFirst(cards[:3], false); err == nil || !strings.Contains(err.Error(), "lo: ") || !strings.Contains(err.Error(), "l: its address") {
		t.Errorf("without a usable address: %v", err)
	}
	all, _ := net.Interfaces()
	for _, card := range all {
		for _, allowLocal := range []bool{false, true} {
			got, err := NodeFromInterface(card.Name, allowLocal)
			if want, none := nodeFromMAC(card.HardwareAddr, allowLocal); got != want || (err == nil) != (none == nil) {
				t.Errorf("%s, allowLocal %v: %#x, %v, want %#x, %v", card.Name, allowLocal, got, err, want, none)
			}
		}
	}
	if _, err := nodeFromMAC(nil, true); err == nil {
		t.Error("no address at all was taken")
	}
	if _, err := NodeFromInterface("no-such-interface", true); err == nil || !strings.Contains(err.Error(), "no-such-interface") {
		t.Errorf("NodeFromInterface: got %v, want an error that names the interface", err)
	}
}
