package firn_test

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/must"
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
