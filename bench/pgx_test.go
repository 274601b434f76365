package bench

import (
	"testing"

	"github.com/firnid/firn"
	"github.com/jackc/pgx/v5/pgtype"
)

// TestPgx verifies docs/databases.md for pgx: which columns accept which value,
// and return it.
func TestPgx(t *testing.T) {
	types := pgtype.NewMap()
	id, wide := firn.ID(117232474546765824), firn.ID128FromUint64s(0x01947a3527c17000, 5)
	for _, tt := range []struct {
		column string
		oid    uint32
		format int16
		value  any
		takes  bool
		scans  bool // into the type of the ID
	}{
		{"bigint", pgtype.Int8OID, pgtype.BinaryFormatCode, id, true, true},
		{"bigint", pgtype.Int8OID, pgtype.TextFormatCode, id, true, true},
		{"text", pgtype.TextOID, pgtype.TextFormatCode, id, false, false},
		{"text", pgtype.TextOID, pgtype.TextFormatCode, id.String(), true, true},
		{"varchar", pgtype.VarcharOID, pgtype.TextFormatCode, id.String(), true, true},
		{"uuid", pgtype.UUIDOID, pgtype.BinaryFormatCode, wide, true, true},
		{"text", pgtype.TextOID, pgtype.TextFormatCode, wide, true, true},
	} {
		b, err := types.Encode(tt.oid, tt.format, tt.value, nil)
		if (err == nil) != tt.takes {
			t.Errorf("a %T for %s: %q, %v", tt.value, tt.column, b, err)
		}
		if !tt.scans {
			continue
		}
		if tt.value == any(wide) {
			var got firn.ID128
			if err := types.Scan(tt.oid, tt.format, b, &got); err != nil || got != wide {
				t.Errorf("%s: scan %q: %v, %v", tt.column, b, got, err)
			}
			continue
		}
		var got firn.ID
		if err := types.Scan(tt.oid, tt.format, b, &got); err != nil || got != id {
			t.Errorf("%s: scan %q: %v, %v", tt.column, b, got, err)
		}
	}
}
