package typed_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/firnid/firn"
	"github.com/firnid/firn/internal/test/must"
	"github.com/firnid/firn/typed"
)

// The published examples of TypeID 0.3.
func TestTypeID(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/typeid.json"))(t)
	var all struct {
		Valid, Invalid []struct{ Name, TypeID, Prefix, UUID string }
	}
	must.Do(t, json.Unmarshal(text, &all))
	if len(all.Valid) != 9 || len(all.Invalid) != 19 {
		t.Fatalf("%d valid and %d invalid examples, want 9 and 19", len(all.Valid), len(all.Invalid))
	}
	for _, x := range all.Valid {
		id := must.Get(firn.ParseID128(x.UUID))(t)
		if got := typed.Text(x.Prefix, id); got != x.TypeID {
			t.Errorf("%s: Text(%q, %v) = %s, want %s", x.Name, x.Prefix, id, got, x.TypeID)
		}
		if got, err := typed.Parse[firn.ID128](x.Prefix, x.TypeID); got != id || err != nil {
			t.Errorf("%s: Parse(%s) = %v, %v, want %v", x.Name, x.TypeID, got, err, id)
		}
	}
	for _, x := range all.Invalid {
		_, _, err := typed.Cut(x.TypeID)
		if _, ok := errors.AsType[*firn.ParseError](err); !ok {
			t.Errorf("%s: Cut(%s): %v, want a *firn.ParseError", x.Name, x.TypeID, err)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"order_03887Nf7a8003":                  `'N' at offset 11 is in upper case; it may mean 'n'`,
		"order_o388r6f3g1w03":                  `'o' at offset 6 is not a digit; it may mean '0'`,
		"order_0388r6f3gIw03":                  `'I' at offset 15 is not a digit; it may mean '1'`,
		"order_0388r6f3glw03":                  `'l' at offset 15 is not a digit; it may mean '1'`,
		"order_0388r6f3guw03":                  `'u' at offset 15 is not a digit; it may mean 'v'`,
		"order_0388r6f3g-w03":                  `'-' at offset 15 is not a digit; digits are 0123456789abcdefghjkmnpqrstvwxyz`,
		"order_0388r6f3g1é03":                  `'é' at offset 16 is not a digit`,
		"order_0388r6f3g1w0":                   "it has 12 digits after the prefix; an ID of 64 bits has 13, and one of 128 has 26",
		"order_03887nf7a80032":                 "it has 14 digits",
		"order_g000000000000":                  `'g' at offset 6 is more than 'f': the number does not fit 64 bits`,
		"order_80000000000000000000000000":     `'8' at offset 6 is more than '7': the number does not fit 128 bits`,
		"order_00000000000000000000000000":     "it has 128 bits after the prefix, not 64",
		"Order_0388r6f3g1w03":                  `prefix "Order" has 'O' at offset 0`,
		"order__0388r6f3g1w03":                 "begins or ends with an underscore",
		"_0388r6f3g1w03":                       "is empty",
		"0388r6f3g1w03":                        `its prefix is "", not "order"`,
		"user_0388r6f3g1w03":                   `its prefix is "user", not "order"`,
		"v1_03887nf7a8003":                     "it is a veiled ID",
		"117383499776000003":                   "it has 18 digits after the prefix",
		"":                                     "it has 0 digits",
		"order_" + strings.Repeat("0", 100000): "it has 100000 digits",
	} {
		id := OrderID(7)
		err := id.UnmarshalText([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("UnmarshalText(%.40q): %v, want an error with %q", text, err, want)
		}
		if id != 7 {
			t.Errorf("UnmarshalText(%.40q) changed the ID to %v", text, id)
		}
	}
}

func TestCheckPrefix(t *testing.T) {
	for _, ok := range []string{"a", "order", "line_item", "a__b", strings.Repeat("x", 63)} {
		must.Do(t, typed.CheckPrefix(ok))
	}
	for _, bad := range []string{"", "Order", "order1", "_a", "a_", "_", "a-b", "é", "a b", strings.Repeat("x", 64), "\xff"} {
		if err := typed.CheckPrefix(bad); err == nil {
			t.Errorf("CheckPrefix(%q) = nil", bad)
		}
	}
}

// Texts are the inverse of Parse, and sort like the IDs.
func FuzzText(f *testing.F) {
	f.Add("order", uint64(0), uint64(1))
	f.Add("a", uint64(1)<<63, ^uint64(0))
	f.Fuzz(func(t *testing.T, prefix string, a, b uint64) {
		if typed.CheckPrefix(prefix) != nil {
			prefix = ""
		}
		x, y := typed.Text(prefix, firn.ID(a)), typed.Text(prefix, firn.ID(b))
		if (a < b) != (x < y) {
			t.Errorf("texts %s and %s do not sort like %d and %d", x, y, a, b)
		}
		if got, err := typed.Parse[firn.ID](prefix, x); err != nil || got != firn.ID(a) {
			t.Errorf("Parse(%s) = %v, %v, want %d", x, got, err, a)
		}
		wide := firn.ID128FromUint64s(a, b)
		z := typed.Text(prefix, wide)
		if got, err := typed.Parse[firn.ID128](prefix, z); err != nil || got != wide {
			t.Errorf("Parse(%s) = %v, %v, want %v", z, got, err, wide)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("order_03887nf7a8003")
	f.Add("pre_fix_01h455vb4pex5vsknk084sn02q")
	f.Fuzz(func(t *testing.T, text string) {
		prefix, digits, err := typed.Cut(text)
		if err != nil {
			return
		}
		var again string
		if len(digits) == 13 {
			id := must.Get(typed.Parse[firn.ID](prefix, text))(t)
			again = typed.Text(prefix, id)
		} else {
			id := must.Get(typed.Parse[firn.ID128](prefix, text))(t)
			again = typed.Text(prefix, id)
		}
		if again != text {
			t.Errorf("%q was read, and is written as %q", text, again)
		}
	})
}

// TestVerbs: numbers of typed IDs are those of firn.ID and firn.ID128, and all
// other verbs print the text.
func TestVerbs(t *testing.T) {
	id, wide := OrderID(255), typed.ID128[order]{15: 255}
	for _, verb := range []string{"%d", "%06d", "%b", "%o", "%O", "%x", "%#x", "%X", "%#v"} {
		if got, want := fmt.Sprintf(verb, id), fmt.Sprintf(verb, firn.ID(id)); got != want {
			t.Errorf("%s of an ID prints %s, want %s", verb, got, want)
		}
		if got, want := fmt.Sprintf(verb, wide), fmt.Sprintf(verb, firn.ID128(wide)); got != want {
			t.Errorf("%s of an ID128 prints %s, want %s", verb, got, want)
		}
	}
	for _, verb := range []string{"%v", "%+v", "%s", "%q", "%25s", "%-25v|"} {
		if got, want := fmt.Sprintf(verb, id), fmt.Sprintf(verb, id.String()); got != want {
			t.Errorf("%s of an ID prints %s, want %s", verb, got, want)
		}
		if got, want := fmt.Sprintf(verb, wide), fmt.Sprintf(verb, wide.String()); got != want {
			t.Errorf("%s of an ID128 prints %s, want %s", verb, got, want)
		}
	}
	if wide.Compare(typed.ID128[order]{14: 1}) != -1 || wide.Compare(wide) != 0 {
		t.Error("Compare does not order like the numbers")
	}
}

type upper struct{}

func (upper) Prefix() string { return "ORDER" }

// IDs of a kind go through JSON and SQL, and an invalid prefix is an error.
func TestKinds(t *testing.T) {
	type row struct {
		ID   OrderID             `json:"id"`
		Long typed.ID128[order]  `json:"long"`
		By   *typed.ID[customer] `json:"by"`
		None OrderID             `json:"none,omitzero"`
		Seen map[OrderID]bool    `json:"seen"`
	}
	by := typed.ID[customer](1)
	in := row{117383499776000003, typed.ID128[order]{1, 15: 2}, &by, 0, map[OrderID]bool{5: true}}
	text, err := json.Marshal(in)
	const want = `{"id":"order_03887nf7a8003","long":"order_01000000000000000000000002","by":"customer_0000000000001","seen":{"order_0000000000005":true}}`
	if err != nil || string(text) != want {
		t.Errorf("Marshal = %s, %v, want %s", text, err, want)
	}
	var out row
	if err := json.Unmarshal(text, &out); err != nil || out.ID != in.ID || out.Long != in.Long || *out.By != by || !out.Seen[5] {
		t.Errorf("Unmarshal = %+v, %v, want %+v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"id":117383499776000003}`), &out); err == nil {
		t.Error("a number was read as a typed ID")
	}

	var scanned OrderID
	if err := scanned.Scan(int64(117383499776000003)); err != nil || scanned != in.ID {
		t.Errorf("Scan = %v, %v, want %v", scanned, err, in.ID)
	}
	var long typed.ID128[order]
	stored, err := in.Long.Value()
	if err != nil || long.Scan(stored) != nil || long != in.Long {
		t.Errorf("Value = %v, %v, and Scan of it %v", stored, err, long)
	}
	if null, err := OrderID(0).Value(); null != nil || err != nil || !OrderID(0).IsZero() || !(typed.ID128[order]{}).IsZero() {
		t.Errorf("the zero ID is stored as %v, %v", null, err)
	}
	var _ sql.Scanner = &scanned

	if _, err := typed.ID[upper](1).MarshalText(); err == nil {
		t.Error("a kind with an invalid prefix has a text")
	}
	if got := long.String(); got != "order_01000000000000000000000002" {
		t.Errorf("String = %s", got)
	}
}
