#!/bin/sh
# xid-js: another xid library refuses its IDs, or reads other ones.
#
# Packages: xid-js 1.0.1 (npm), "ported from golang package xid";
#   github.com/rs/xid v1.6.0 (Go), to read the IDs.
# Guess: 20 letters of base32 with the 12 bytes of an xid: what one library
#   writes the others read, with the same time and counter.
# Behaviour: the texts are written in Crockford's alphabet, as the README says,
#   without i, l, o and u. An xid has the letters 0 to 9 and a to v. Up to the
#   value 17 both are the same, and the time of these years begins with such
#   letters, so the texts look alike. One that has a w, x, y or z is refused by
#   the others, each other text is read as other bytes. Of some hosts and
#   processes all are refused, since these are part of the ID.
# Seen 2026-11-29: of 10,000 IDs of one process, made 1,000 s apart, Go refuses
#   5,380, reads 4,620 as others, and none right.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error xid-js@1.0.1 >npm.log
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/rs/xid@v1.6.0 2>>go.log

cat >main.cjs <<'EOF'
// The host, the process and the random start of the counter are held still, so that the IDs are the same each time.
require('os').hostname = () => 'host-1'
Object.defineProperty(process, 'pid', { value: 4242 })
require('crypto').randomBytes = (n) => Buffer.alloc(n)
let now = Date.UTC(2026, 10, 27)
Date.now = () => now
const xid = require('xid-js')

for (let i = 0; i < 10000; i++) {
  now += 1000000
  console.log(now / 1000, xid.next())
}
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/rs/xid"
)

func main() {
	var refused, other, same int
	for i := range int32(10000) {
		var second int64
		var text string
		if _, err := fmt.Scan(&second, &text); err != nil {
			panic(err)
		}
		switch id, err := xid.FromString(text); {
		case err != nil:
			refused++
		case id.Time().Unix() != second || id.Counter() != i:
			other++
		default:
			same++
		}
	}
	fmt.Printf("refused %d, read as another %d, read right %d\n", refused, other, same)
}
EOF
cat >want <<'EOF'
refused 5380, read as another 4620, read right 0
EOF

node main.cjs >ids
go run . <ids >got
cat got
diff want got >&2 || { echo "xid-js-texts-are-other-xids: no longer holds" >&2; exit 1; }
