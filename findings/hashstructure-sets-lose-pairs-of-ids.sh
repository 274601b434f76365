#!/bin/sh
# hashstructure: as sets, lists of IDs in which one occurs twice have equal
# hashes.
#
# Package: github.com/mitchellh/hashstructure/v2 v2.0.2 (Go).
# Guess: SlicesAsSets ignores the order; [5 5 9] hashes as [5 9] (a set) or as
#   a list of three, and never as [9] or [7 7 9].
# Behaviour: the hashes of the elements are combined by XOR, so an element
#   that occurs twice vanishes, whatever it is. [5 5] and [7 7] have the hash
#   of the empty list: a cache or a change check by this hash takes one for
#   the other.
# Seen 2026-11-28: [5 5] = [7 7] = [] and [5 5 9] = [7 7 9] = [9]; [5 9]
#   differs.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/mitchellh/hashstructure/v2@v2.0.2 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/mitchellh/hashstructure/v2"
)

func hash(ids ...int64) uint64 {
	h, err := hashstructure.Hash(ids, hashstructure.FormatV2, &hashstructure.HashOptions{SlicesAsSets: true})
	if err != nil {
		panic(err)
	}
	return h
}

func main() {
	fmt.Println("[5 5] and [7 7]:", hash(5, 5) == hash(7, 7), "| [5 5] and []:", hash(5, 5) == hash())
	fmt.Println("[5 5 9] and [7 7 9]:", hash(5, 5, 9) == hash(7, 7, 9), "| and [9]:", hash(5, 5, 9) == hash(9))
	fmt.Println("[5 5 9] and [5 9]:", hash(5, 5, 9) == hash(5, 9))
}
EOF
cat >want <<'EOF'
[5 5] and [7 7]: true | [5 5] and []: true
[5 5 9] and [7 7 9]: true | and [9]: true
[5 5 9] and [5 9]: false
EOF

go run . >got
cat got
diff want got >&2 || { echo "hashstructure-sets-lose-pairs-of-ids: no longer holds" >&2; exit 1; }
