#!/bin/sh
# serialx/hashring (Go): each node has one point on the ring, so a node gets
# half of the IDs or next to none.
#
# Package: github.com/serialx/hashring
#   v0.0.0-20200727003509-22c0c7ab6b1b (Go).
# Guess: the README promises the algorithm of libketama, which gives a node 160
#   points: with 4 nodes, each gets a quarter of the IDs, more or less.
# Behaviour: New makes as many points as the weight of a node, and the weight
#   is 1. With 4 nodes there are 4 points, and the share of a node is the
#   distance between two hashes. Equal weights of 160 in NewWithWeights make it
#   even.
# Seen 2026-11-30: of 100,000 IDs in a row, the four nodes get 39376, 74, 25401
#   and 35149; with equal weights of 160, each gets 24 to 26.3 %.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/serialx/hashring@v0.0.0-20200727003509-22c0c7ab6b1b 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strconv"

	"github.com/serialx/hashring"
)

func main() {
	var nodes []string
	weights := map[string]int{}
	for i := 1; i <= 4; i++ {
		node := fmt.Sprintf("10.0.0.%d:11211", i)
		nodes = append(nodes, node)
		weights[node] = 160
	}
	print("New", hashring.New(nodes), nodes)
	print("weights of 160", hashring.NewWithWeights(weights), nodes)
}

func print(name string, ring *hashring.HashRing, nodes []string) {
	count := map[string]int{}
	for i := range int64(100000) {
		node, _ := ring.GetNode(strconv.FormatInt(1179183313482456071+i, 10))
		count[node]++
	}
	for _, node := range nodes {
		fmt.Printf("%s: %s has %d\n", name, node, count[node])
	}
}
EOF
cat >want <<'EOF'
New: 10.0.0.1:11211 has 39376
New: 10.0.0.2:11211 has 74
New: 10.0.0.3:11211 has 25401
New: 10.0.0.4:11211 has 35149
weights of 160: 10.0.0.1:11211 has 26298
weights of 160: 10.0.0.2:11211 has 24828
weights of 160: 10.0.0.3:11211 has 24074
weights of 160: 10.0.0.4:11211 has 24800
EOF

go run . >got
cat got
diff want got >&2 || { echo "hashring-go-gives-a-node-one-point: no longer holds" >&2; exit 1; }
