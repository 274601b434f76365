package bench

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/bwmarrin/snowflake"
	"github.com/firnid/firn"
)

// TestBwmarrin runs the table of docs/moving.md: IDs of one library mean the
// same in the other, and each line describes the other's equivalent.
func TestBwmarrin(t *testing.T) {
	node, err := snowflake.NewNode(7)
	if err != nil {
		t.Fatal(err)
	}
	layout := firn.MustParseLayout("twitter")
	for range 1000 {
		old := node.Generate()
		id := firn.ID(old.Int64())
		parts, err := layout.Decompose(id)
		if err != nil || parts.Time.UnixMilli() != old.Time() || int64(parts.Node) != old.Node() || int64(parts.Seq) != old.Step() {
			t.Fatalf("%s: %+v, %v", old, parts, err)
		}
		parsed, err := firn.ParseID(old.String())
		if err != nil || parsed != id {
			t.Fatalf("ParseID(%s) = %d, %v", old, parsed, err)
		}
		raw, _ := id.MarshalBinary()
		bytes := old.IntBytes()
		ours, _ := json.Marshal(id)
		theirs, _ := json.Marshal(old)
		for _, row := range []struct{ name, old, firn string }{
			{"Int64", fmt.Sprint(old.Int64()), fmt.Sprint(int64(id))},
			{"String", old.String(), id.String()},
			{"Base2", old.Base2(), fmt.Sprintf("%b", id)},
			{"Base36", old.Base36(), strconv.FormatUint(uint64(id), 36)},
			{"Base64", old.Base64(), base64.StdEncoding.EncodeToString([]byte(id.String()))},
			{"Bytes", string(old.Bytes()), id.String()},
			{"IntBytes", string(bytes[:]), string(raw)},
			{"JSON", string(theirs), string(ours)},
		} {
			if row.old != row.firn {
				t.Fatalf("%s of %s is %q, and with Firn %q", row.name, old, row.old, row.firn)
			}
		}
		var read firn.ID
		if err := json.Unmarshal(theirs, &read); err != nil || read != id {
			t.Fatalf("json.Unmarshal(%s) = %d, %v", theirs, read, err)
		}
		var back snowflake.ID
		if err := json.Unmarshal(ours, &back); err != nil || back != old {
			t.Fatalf("back from %s: %d, %v", ours, back, err)
		}
		// Its base 32 and base 58 have their own alphabets.
		if old.Base58() == string(firn.Base58.Append(nil, id)) || old.Base32() == string(firn.Base32.Append(nil, id)) {
			t.Fatalf("%s: base 32 or base 58 are alike", old)
		}
	}
}
