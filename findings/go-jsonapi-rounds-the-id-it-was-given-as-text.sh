#!/bin/sh
# hashicorp/jsonapi: an ID in quotes is rounded on its way into an int64 field.
#
# Package: github.com/hashicorp/jsonapi v1.5.0 (Go), the maintained fork of
#   google/jsonapi.
# Guess: JSON:API wants IDs as strings, so that no client rounds them; the
#   package parses the string as an integer.
# Behaviour: the string is parsed as a float64 first, whatever the type of the
#   field, and converted. Relations too. A field of type string is exact.
#   Marshalling writes all digits, so a round trip changes the ID.
# Seen 2026-11-28: the texts ...071 and ...072 both become
#   1179183313482456064, without an error.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/hashicorp/jsonapi@v1.5.0 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"fmt"
	"strings"

	"github.com/hashicorp/jsonapi"
)

type Order struct {
	ID     int64  `jsonapi:"primary,orders"`
	Parent *Order `jsonapi:"relation,parent"`
}

type Text struct {
	ID string `jsonapi:"primary,orders"`
}

func main() {
	for _, id := range []string{"1179183313482456071", "1179183313482456072"} {
		body := `{"data":{"type":"orders","id":"` + id + `","relationships":{"parent":{"data":{"type":"orders","id":"` + id + `"}}}}}`
		var order Order
		err := jsonapi.UnmarshalPayload(strings.NewReader(body), &order)
		fmt.Println(id, "-> int64", order.ID, "parent", order.Parent.ID, err)
		var text Text
		err = jsonapi.UnmarshalPayload(strings.NewReader(body), &text)
		fmt.Println(id, "-> string", text.ID, err)
	}
}
EOF
cat >want <<'EOF'
1179183313482456071 -> int64 1179183313482456064 parent 1179183313482456064 <nil>
1179183313482456071 -> string 1179183313482456071 <nil>
1179183313482456072 -> int64 1179183313482456064 parent 1179183313482456064 <nil>
1179183313482456072 -> string 1179183313482456072 <nil>
EOF

go run . >got
cat got
diff want got >&2 || { echo "go-jsonapi-rounds-the-id-it-was-given-as-text: no longer holds" >&2; exit 1; }
