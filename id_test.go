package firn_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
)

// The interfaces of both types of ID, as values and as pointers.
type (
	idtValue interface {
		comparable
		fmt.Stringer
		encoding.TextMarshaler
		encoding.BinaryMarshaler
		json.Marshaler
		driver.Valuer
		IsZero() bool
	}
	idtPointer interface {
		encoding.TextUnmarshaler
		encoding.BinaryUnmarshaler
		json.Unmarshaler
		sql.Scanner
	}
)

func TestIDLaws(t *testing.T) {
	t.Run("ID", func(t *testing.T) { idtLaws(t, encKind64) })
	t.Run("ID128", func(t *testing.T) { idtLaws(t, encKind128) })
}

// idtLaws checks that every form of an ID can be parsed again, that the forms
// agree with each other, and that they keep the order.
func idtLaws[T idtValue](t *testing.T, k encKind[T]) {
	samples := k.samples()
	var last []byte
	for i, id := range samples {
		text := id.String()
		if got := string(must.Get(id.MarshalText())(t)); got != text {
			t.Fatalf("MarshalText = %q, want %q", got, text)
		}
		if got, want := string(must.Get(id.MarshalJSON())(t)), `"`+text+`"`; got != want {
			t.Fatalf("MarshalJSON = %s, want %s", got, want)
		}
		raw := must.Get(id.MarshalBinary())(t)
		if want := k.number(id).FillBytes(make([]byte, k.bits/8)); !bytes.Equal(raw, want) {
			t.Fatalf("MarshalBinary of %v = %x, want %x", id, raw, want)
		}
		if i > 0 && (k.compare(samples[i-1], id) >= 0 || bytes.Compare(last, raw) >= 0) {
			t.Fatalf("%v is not after %v, or its bytes are not", id, samples[i-1])
		}
		last = raw
		if k.compare(id, id) != 0 || id.IsZero() != (k.number(id).Sign() == 0) {
			t.Fatalf("%v: Compare with itself = %d, IsZero = %t", id, k.compare(id, id), id.IsZero())
		}

		// Every text for this number.
		dec := k.number(id).String()
		hex := k.number(id).Text(16)
		texts := []string{
			text, dec,
			strings.Repeat("0", len(encKindMax(k))-len(dec)) + dec,
			"0x" + hex, "0x" + strings.ToUpper(hex),
			"0x" + strings.Repeat("0", k.bits/4-len(hex)) + hex,
		}
		if k.bits == 128 {
			texts = append(texts, strings.ToUpper(text))
		}
		for _, s := range texts {
			if got, err := k.parseID(s); err != nil || got != id {
				t.Fatalf("Parse(%q) = %v, %v, want %v", s, got, err, id)
			}
			encFuzzParse(t, k, s)
			encFuzzJSON(t, k, []byte(`"`+s+`"`))
			encFuzzScan(t, k, []byte(s), int64(i))
		}
		encFuzzJSON(t, k, []byte(dec))
		encFuzzScan(t, k, raw, -int64(i))
		var got T
		if err := any(&got).(idtPointer).UnmarshalBinary(raw); err != nil || got != id {
			t.Fatalf("UnmarshalBinary(%x) = %v, %v, want %v", raw, got, err, id)
		}
		// encFuzzScan checks that Scan reads it.
		if v, _ := id.Value(); !driver.IsValue(v) || k.bits == 128 && !id.IsZero() && v != text {
			t.Fatalf("Value of %v = %T %v", id, v, v)
		}
	}
	t.Logf("%d IDs", len(samples))
}

// encKindMax returns the greatest ID in decimal.
func encKindMax[T comparable](k encKind[T]) string {
	return k.number(k.of(math.MaxUint64, math.MaxUint64)).String()
}

// Invalid input leaves the receiver unchanged with every method.
func TestUnmarshalLeavesReceiver(t *testing.T) {
	t.Run("ID", func(t *testing.T) { idtLeaves(t, firn.ID(7), 8) })
	t.Run("ID128", func(t *testing.T) { idtLeaves(t, firn.ID128FromUint64s(7, 7), 16) })
}

func idtLeaves[T idtValue](t *testing.T, was T, size int) {
	id := was
	check := func(what string, in any, err error) {
		t.Helper()
		if err == nil || id != was {
			t.Errorf("%s(%#v): error %v, and the receiver is %v, want an error and %v", what, in, err, id, was)
		}
		id = was
	}
	for _, n := range []int{0, 1, size - 1, size + 1, 2 * size, 100} {
		check("UnmarshalBinary", n, any(&id).(idtPointer).UnmarshalBinary(make([]byte, n)))
	}
	for _, v := range []any{
		int64(-1), int64(math.MinInt64), 1.0, true, int(1), int32(1), uint32(1), [8]byte{}, [16]byte{}, struct{}{}, new(int64), json.Number("1"),
	} {
		err := any(&id).(idtPointer).Scan(v)
		check("Scan", v, err)
		if _, isInt := v.(int64); !isInt && err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%T", v)) {
			t.Errorf("Scan(%#v): %v: want the type %T in it", v, err, v)
		}
	}

	// Null is valid: in JSON it does not change the receiver, in SQL it means
	// no ID.
	if err := any(&id).(idtPointer).UnmarshalJSON([]byte("null")); err != nil || id != was {
		t.Errorf("UnmarshalJSON(null) = %v, and the receiver is %v, want %v", err, id, was)
	}
	if err := any(&id).(idtPointer).Scan(nil); err != nil || !id.IsZero() {
		t.Errorf("Scan(nil) = %v, and the receiver is %v, want zero", err, id)
	}
	if v, err := id.Value(); v != nil || err != nil {
		t.Errorf("Value of the zero ID = %v, %v, want nil", v, err)
	}
}

func TestIDAllocs(t *testing.T) {
	id, wide := firn.ID(math.MaxUint64), firn.ID128FromUint64s(math.MaxUint64, math.MaxUint64)
	text, wideText := id.String(), wide.String()
	textBytes, wideBytes := []byte(text), []byte(wideText)
	quoted, wideQuoted := []byte(`"`+text+`"`), []byte(`"`+wideText+`"`)
	digits := []byte(encKindMax(encKind128))
	for name, call := range map[string]func(){
		"ParseID":               func() { id, _ = firn.ParseID(text) },
		"ID.UnmarshalText":      func() { _ = id.UnmarshalText(textBytes) },
		"ID.UnmarshalJSON":      func() { _ = id.UnmarshalJSON(quoted) },
		"ID.UnmarshalJSON int":  func() { _ = id.UnmarshalJSON(textBytes) },
		"ParseID128":            func() { wide, _ = firn.ParseID128(wideText) },
		"ID128.UnmarshalText":   func() { _ = wide.UnmarshalText(wideBytes) },
		"ID128.UnmarshalJSON":   func() { _ = wide.UnmarshalJSON(wideQuoted) },
		"ID128.UnmarshalJSON 2": func() { _ = wide.UnmarshalJSON(digits) },
	} {
		if n := testing.AllocsPerRun(100, call); n != 0 {
			t.Errorf("%s allocates %v times, want 0", name, n)
		}
	}
	if id != math.MaxUint64 || wide.String() != wideText {
		t.Errorf("the IDs are %v and %v now", id, wide)
	}
}

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
		{"%#v", "[16]uint8{0x1, 0x94, 0x7a, 0x35, 0x27, 0xc1, 0x70, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x5}",
			firn.ID128FromUint64s(0x01947a3527c17000, 5)},
	} {
		if got := fmt.Sprintf(tt.verb, tt.value); got != tt.want {
			t.Errorf("Sprintf(%q) = %s, want %s", tt.verb, got, tt.want)
		}
	}
}
