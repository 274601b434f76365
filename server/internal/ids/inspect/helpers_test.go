package inspect

import (
	"testing"
	"time"

	"github.com/firnid/firn"
)

// testNow is the moment by which readings are judged in these tests.
var testNow = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)

func mustRead(t *testing.T, text string, o Options) Result {
	t.Helper()
	if o.Now.IsZero() {
		o.Now = testNow
	}
	r, err := Read(text, o)
	if err != nil {
		t.Fatalf("Read(%q) = %v", text, err)
	}
	return r
}

// texts are IDs of all kinds, for the laws that hold for each.
func texts() []string {
	return []string{
		"0", "5", "117412911634186240", "18446744073709551615", "1212092628029698048", "175928847299117063",
		"0x62f3f95a00430000", "62f3f95a00430000", "31359464925324684491273709518848",
		"0000018bcfe56800ffffffffffff8000", "0x0000018bcfe56800ffffffffffff8000", "AboKHPfZvePUStfgB6",
		"0190163d-8694-739b-aea5-966c26f8ad91", "c232ab00-9414-11ec-b3c8-9e6bdeced846",
		"1EC9414C-232A-6B00-B3C8-9E6BDECED846", "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "9m4e2mr0ui3e8a215n4g",
		"507f1f77bcf86cd799439011", "8fl90WeizA", "038940FDM0000",
	}
}

// compose makes an ID of either size.
func compose(t testing.TB, l firn.Layout, p firn.Parts) []byte {
	t.Helper()
	if l.Bits() == 128 {
		id, err := l.Compose128(p)
		if err != nil {
			t.Fatalf("Compose128(%v) of %v = %v", p, l, err)
		}
		return id[:]
	}
	id, err := l.Compose(p)
	if err != nil {
		t.Fatalf("Compose(%v) of %v = %v", p, l, err)
	}
	return firn.Raw.Append(nil, id)
}
