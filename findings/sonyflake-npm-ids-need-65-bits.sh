#!/bin/sh
# sonyflake (npm): the IDs need 65 bits, and with an epoch of one's own the Go
# package reads a time of the next century from them.
#
# Packages: sonyflake 1.1.2 (npm), and to read the IDs
#   github.com/sony/sonyflake v1.3.0 (Go), of which it is an implementation.
# Guess: a Sonyflake has 63 bits: 39 of time in units of 10 ms, 8 of sequence,
#   16 of the machine. They last for 174 years.
# Behaviour: the unit is 1 ms, so that 39 bits last for 17 years, and the epoch
#   is 1970. An ID of today has 65 bits, which neither a BIGINT nor a uint64
#   holds. With the epoch of the Go package, 2014-09-01, the IDs fit until 2032,
#   and the two packages read different times from one ID.
# Seen 2026-11-29: 65 bits; with the epoch of 2014 63 bits, and the Go package
#   reads 2137 from an ID of 2026. Machine 7 is 7.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error sonyflake@1.1.2 >npm.log
export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/sony/sonyflake@v1.3.0 2>>go.log

cat >main.mjs <<'EOF'
import { Sonyflake } from 'sonyflake'

Date.now = () => Date.UTC(2026, 10, 27)
const bits = (id) => BigInt(id).toString(2).length
console.log(bits(new Sonyflake({ machineId: 7 }).nextId()), 'bits')
const id = new Sonyflake({ machineId: 7, epoch: Date.UTC(2014, 8, 1) }).nextId()
console.log(bits(id), 'bits')
console.error(id)
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"time"

	"github.com/sony/sonyflake"
)

func main() {
	var id uint64
	if _, err := fmt.Scan(&id); err != nil {
		panic(err)
	}
	parts := sonyflake.Decompose(id)
	at := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC)
	for range parts["time"] / 360000 {
		at = at.Add(time.Hour)
	}
	fmt.Println("read as", at.Year(), "machine", parts["machine-id"])
}
EOF
cat >want <<'EOF'
65 bits
63 bits
read as 2137 machine 7
EOF

node main.mjs >got 2>id
go run . <id >>got
cat got
diff want got >&2 || { echo "sonyflake-npm-ids-need-65-bits: no longer holds" >&2; exit 1; }
