#!/bin/sh
# expr (Go): a uint64 of 2^63 or more is smaller than 0.
#
# Package: github.com/expr-lang/expr v1.17.8 (Go).
# Guess: comparisons of a uint64 field with a constant follow Go: the program
#   is checked against the types of the environment when it is compiled.
# Behaviour: both sides are converted to int before they are compared, so the
#   upper half of the range is negative, and an unsigned ID equals the negative
#   number of the same bits. max() answers accordingly.
# Seen 2026-11-28: with u = 9223372036854775813, u > 5 is false and u < 0 is
#   true.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/expr-lang/expr@v1.17.8 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/expr-lang/expr"
)

func main() {
	env := map[string]any{"u": uint64(1<<63 + 5), "i": int64(-1<<63 + 5), "v": uint64(1<<63 - 1)}
	fmt.Println("u =", env["u"], "i =", env["i"], "v =", env["v"])
	for _, code := range []string{"u > 5", "u < 0", "u > v", "u == i", "u + 1", "max(u, v)"} {
		program, err := expr.Compile(code, expr.Env(env))
		if err != nil {
			fmt.Println(code, err)
			continue
		}
		result, err := expr.Run(program, env)
		fmt.Println(code, "=", result, err)
	}
}
EOF
cat >want <<'EOF'
u = 9223372036854775813 i = -9223372036854775803 v = 9223372036854775807
u > 5 = false <nil>
u < 0 = true <nil>
u > v = false <nil>
u == i = true <nil>
u + 1 = -9223372036854775802 <nil>
max(u, v) = 9223372036854775807 <nil>
EOF

go run . >got
cat got
diff want got >&2 || { echo "expr-takes-large-unsigned-ids-for-negative: no longer holds" >&2; exit 1; }
