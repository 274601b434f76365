#!/bin/sh
# jinzhu/copier: an int64 ID copied to a string field is U+FFFD for every ID.
#
# Package: github.com/jinzhu/copier v0.4.0 (Go).
# Guess: a field whose type differs is left out, is an error, or gets the
#   decimal digits.
# Behaviour: the number is converted as a code point: any ID above 1,114,111
#   becomes the one replacement character, a small one a letter. Copy returns
#   nil. All rows have one ID then. An int64 copied to an int32 wraps.
# Seen 2026-11-28: 65 becomes "A", two 63-bit IDs become "\ufffd" both; as
#   int32 -584016889.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/jinzhu/copier@v0.4.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/jinzhu/copier"
)

func main() {
	for _, id := range []int64{65, 1179183313482456071, 1179183313482456072} {
		row := struct{ ID int64 }{id}
		var text struct{ ID string }
		var small struct{ ID int32 }
		err := copier.Copy(&text, row)
		fmt.Printf("%d to string: %+q %v\n", id, text.ID, err)
		err = copier.Copy(&small, row)
		fmt.Printf("%d to int32: %d %v\n", id, small.ID, err)
	}
}
EOF
cat >want <<'EOF'
65 to string: "A" <nil>
65 to int32: 65 <nil>
1179183313482456071 to string: "\ufffd" <nil>
1179183313482456071 to int32: -584016889 <nil>
1179183313482456072 to string: "\ufffd" <nil>
1179183313482456072 to int32: -584016888 <nil>
EOF

go run . >got
cat got
diff want got >&2 || { echo "copier-writes-every-id-as-one-character: no longer holds" >&2; exit 1; }
