#!/bin/sh
# testify: JSONEq passes for JSON with another ID, YAMLEq fails for the same
# texts.
#
# Package: github.com/stretchr/testify v1.12.1 (Go).
# Guess: a test that compares an answer with the expected JSON fails if an ID
#   differs in its last digit.
# Behaviour: JSONEq decodes both texts into any, where numbers are float64:
#   63-bit IDs within some hundred of each other are equal. YAMLEq keeps
#   integers and sees it.
# Seen 2026-11-28: JSONEq true, YAMLEq false for …071 against …070.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/stretchr/testify@v1.12.1 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"

	"github.com/stretchr/testify/assert"
)

type quiet struct{}

func (quiet) Errorf(string, ...any) {}

func main() {
	want, got := `{"id": 1179183313482456071}`, `{"id": 1179183313482456070}`
	fmt.Println("JSONEq", assert.JSONEq(quiet{}, want, got))
	fmt.Println("YAMLEq", assert.YAMLEq(quiet{}, want, got))
}
EOF
cat >want <<'EOF'
JSONEq true
YAMLEq false
EOF

go run . >got
cat got
diff want got >&2 || { echo "testify-jsoneq-passes-another-id: no longer holds" >&2; exit 1; }
