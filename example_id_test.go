package firn_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/firnid/firn"
)

// A handler returns IDs in JSON as strings, because JavaScript rounds numbers
// above 2^53. Requests may contain strings or exact integers.
func ExampleID() {
	type order struct {
		ID     firn.ID `json:"id"`
		Parent firn.ID `json:"parent,omitzero"`
	}
	data, _ := json.Marshal(order{ID: 7130316800004390912})
	fmt.Println(string(data))

	var o order
	err := json.Unmarshal([]byte(`{"id": 7130316800004390913, "parent": "0x62f3f95a00430000"}`), &o)
	fmt.Println(o.ID, o.Parent, err)

	err = json.Unmarshal([]byte(`{"id": 7.130316800004391e18}`), &o)
	fmt.Println(err)
	// Output:
	// {"id":"7130316800004390912"}
	// 7130316800004390913 7130316800004390912 <nil>
	// firn: parse ID "7.130316800004391e18": '.' at offset 1 is not a decimal digit
}

// A bigint column holds IDs below 2^63, and NULL for no ID.
func ExampleID_Scan() {
	// The values that a driver would return for the columns id and parent of a
	// row.
	var id, parent firn.ID
	for dest, column := range map[sql.Scanner]any{&id: int64(7130316800004390912), &parent: nil} {
		if err := dest.Scan(column); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(id, parent.IsZero())

	value, err := id.Value()
	fmt.Printf("%T %v %v\n", value, value, err)

	_, err = firn.ID(1 << 63).Value()
	fmt.Println(err)
	// Output:
	// 7130316800004390912 true
	// int64 7130316800004390912 <nil>
	// firn: ID 9223372036854775808 is out of range 0..9223372036854775807 in SQL's bigint: store its String in a numeric column, or its MarshalBinary in a bytea or binary(8) column
}

// User input is parsed strictly, and the error shows where it is wrong.
func ExampleParseID() {
	for _, s := range []string{"7130316800004390912", "0x62f3f95a00430000", "7130 316", "62f3f95a00430000", "99999999999999999999"} {
		id, err := firn.ParseID(s)
		if _, ok := errors.AsType[*firn.ParseError](err); ok {
			fmt.Println(err)
			continue
		}
		fmt.Println(id)
	}
	// Output:
	// 7130316800004390912
	// 7130316800004390912
	// firn: parse ID "7130 316": ' ' at offset 4 is not a decimal digit
	// firn: parse ID "62f3f95a00430000": 'f' at offset 2 is not a decimal digit; hexadecimal begins with 0x
	// firn: parse ID "99999999999999999999": it is more than the greatest 64-bit ID, 18446744073709551615
}

// A 128-bit ID in the forms that other systems use: that of a uuid column, the
// base 32 of ULIDs, and base 62.
func ExampleID128() {
	id, err := firn.ParseID128("31359464925324684491273709518848")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id)
	fmt.Println(firn.Base32.Text128(id))
	fmt.Println(firn.Base62.Text128(id))

	type UUID [16]byte // as in github.com/google/uuid
	u := UUID(id)
	fmt.Printf("%x %t\n", u[:8], firn.ID128(u) == id)
	// Output:
	// 0000018b-cfe5-6800-ffff-ffffffff8000
	// 00000RQKZ5D00FZZZZZZZZZ000
	// 0000AboKHPfZvePUStfgB6
	// 0000018bcfe56800 true
}

// Keys for a store that sorts keys as bytes, and texts as Boundary's flake
// writes them. Both use base 62, but only texts of one length sort like the
// IDs.
func ExampleFormat() {
	ids := []firn.ID{35, 4096, 7130316800004390912}
	format, err := firn.ParseFormat("flake62") // from a flag or a file
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range []firn.Format{firn.Base62, format} {
		var texts []string
		for _, id := range ids {
			texts = append(texts, f.Text(id))
		}
		fmt.Println(f, texts, f.Fixed(), slices.IsSorted(texts))
	}

	// A letter that Crockford's alphabet omits is rejected.
	_, err = firn.Base32.Parse("65WZSB8O46000")
	fmt.Println(err)
	// Output:
	// base62 [0000000000Z 00000000144 8UivRod9Ci0] true true
	// flake62 [Z 144 8UivRod9Ci0] false false
	// firn: parse base32 ID "65WZSB8O46000": 'O' at offset 7 is not a digit: Crockford's alphabet leaves out I, L, O and U: 0123456789ABCDEFGHJKMNPQRSTVWXYZ
}
