#!/bin/sh
# gocql: a bigint column takes a uint64 above 2^63 as a negative number; the
# same value as uint is refused.
#
# Package: github.com/gocql/gocql v1.7.0 (Go).
# Guess: all unsigned types are checked against the range of bigint: the
#   package has an error for that.
# Behaviour: uint64 is written as its bit pattern, so other clients read a
#   negative ID, which sorts before all others; uint and the decimal text are
#   refused as out of range. uint32 into int wraps as well.
# Seen 2026-11-28: uint64 9223372036854775813 is written as 8000000000000005
#   and read as -9223372036854775803.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/gocql/gocql@v1.7.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/gocql/gocql"
)

func main() {
	bigint := gocql.NewNativeType(4, gocql.TypeBigInt, "")
	for _, v := range []any{uint64(1<<63 + 5), uint(1<<63 + 5), "9223372036854775813"} {
		data, err := gocql.Marshal(bigint, v)
		if err != nil {
			fmt.Printf("%T: refused\n", v)
			continue
		}
		var back int64
		err = gocql.Unmarshal(bigint, data, &back)
		fmt.Printf("%T: written %x, read as int64 %d %v\n", v, data, back, err)
	}
}
EOF
cat >want <<'EOF'
uint64: written 8000000000000005, read as int64 -9223372036854775803 <nil>
uint: refused
string: refused
EOF

go run . >got
cat got
diff want got >&2 || { echo "gocql-wraps-uint64-and-refuses-uint: no longer holds" >&2; exit 1; }
