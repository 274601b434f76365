package firn_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/firnid/firn"
)

// The verbs of integers print the same as for a number, and the others the same
// as for the text, with every flag, width and precision.
func TestFormatVerbs(t *testing.T) {
	for _, n := range []uint64{0, 1, 10, 117232474546765824, 1<<63 - 1, 1<<64 - 1} {
		for _, hi := range []uint64{0, 1, 0x0194_7a35_27c1_7000} {
			id, wide := firn.ID(n), firn.ID128FromUint64s(hi, n)
			number := new(big.Int).Or(new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64), new(big.Int).SetUint64(n))
			for _, flags := range []string{"", "0", "+", "-", "#", " ", "#0"} {
				for _, width := range []string{"", "5", "30", "50", ".3", "30.25"} {
					for _, verb := range "dboOxXvsq" {
						verb := "%" + flags + width + string(verb)
						var want, want128 string
						switch verb[len(verb)-1] {
						case 'v', 's', 'q':
							if strings.HasSuffix(verb, "v") && strings.Contains(flags, "#") {
								continue
							}
							want, want128 = fmt.Sprintf(verb, id.String()), fmt.Sprintf(verb, wide.String())
						default:
							want, want128 = fmt.Sprintf(verb, n), fmt.Sprintf(verb, number)
						}
						if got := fmt.Sprintf(verb, id); got != want {
							t.Errorf("%s of the ID %d is %q, want %q", verb[1:], n, got, want)
						}
						if got := fmt.Sprintf(verb, wide); got != want128 {
							t.Errorf("%s of the ID128 %s is %q, want %q", verb[1:], wide.String(), got, want128)
						}
					}
				}
			}
		}
	}
	id := firn.ID(117232474546765824)
	for _, tt := range []struct {
		verb, want string
		value      any
	}{
		{"%#v", "0x1a07e5081800000", id},
		{"%c", "%!c(string=117232474546765824)", id},
		{"%x", "[1a07e5081800000]", []firn.ID{id}},
		{"%+v", "{ID:117232474546765824}", struct{ ID firn.ID }{id}},
		{"%#v", "[16]uint8{0x1, 0x94, 0x7a, 0x35, 0x27, 0xc1, 0x70, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x5}", firn.ID128FromUint64s(0x01947a3527c17000, 5)},
	} {
		if got := fmt.Sprintf(tt.verb, tt.value); got != tt.want {
			t.Errorf("Sprintf(%q) = %s, want %s", tt.verb, got, tt.want)
		}
	}
}
