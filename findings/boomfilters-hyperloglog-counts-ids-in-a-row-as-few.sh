#!/bin/sh
# BoomFilters (Go): its HyperLogLog counts 100,000 IDs in a row as 395.
#
# Packages: github.com/tylertreat/BoomFilters
#   v0.0.0-20251001182300-5b3723cc64ae (Go); for comparison
#   github.com/axiomhq/hyperloglog v0.3.0.
# Guess: NewDefaultHyperLogLog(0.01) is right to some percent for any different
#   values, numbers in a row too: hashing them is its part.
# Behaviour: the hash is FNV-1, which multiplies first and adds the byte after:
#   the last byte changes the low 8 bits only. The register comes from the high
#   bits, so 256 numbers in a row, big-endian, are one value, and 10 decimal
#   texts almost one. The same numbers little-endian, and IDs a millisecond
#   apart as text, are counted well, so a test with others does not show it.
# Seen 2026-11-29: 395 for 8 bytes big-endian, 8,749 for decimal texts, 92,422
#   little-endian; the other package has 100,000 within 2 % for all three.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/tylertreat/BoomFilters@v0.0.0-20251001182300-5b3723cc64ae 2>>go.log
go get github.com/axiomhq/hyperloglog@v0.3.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/axiomhq/hyperloglog"
	boom "github.com/tylertreat/BoomFilters"
)

func main() {
	for _, form := range []struct {
		name   string
		append func([]byte, uint64) []byte
	}{
		{"big-endian", binary.BigEndian.AppendUint64},
		{"decimal text", func(b []byte, id uint64) []byte { return strconv.AppendUint(b, id, 10) }},
		{"little-endian", binary.LittleEndian.AppendUint64},
	} {
		counter, err := boom.NewDefaultHyperLogLog(0.01)
		if err != nil {
			panic(err)
		}
		other := hyperloglog.New14()
		for n := range uint64(100000) {
			id := form.append(nil, 1179183313482456071+n)
			counter.Add(id)
			other.Insert(id)
		}
		right := other.Estimate() > 98000 && other.Estimate() < 102000
		fmt.Printf("%s: %d; the other package is right: %t\n", form.name, counter.Count(), right)
	}
}
EOF
cat >want <<'EOF'
big-endian: 395; the other package is right: true
decimal text: 8749; the other package is right: true
little-endian: 92422; the other package is right: true
EOF

go run . >got
cat got
diff want got >&2 || { echo "boomfilters-hyperloglog-counts-ids-in-a-row-as-few: no longer holds" >&2; exit 1; }
