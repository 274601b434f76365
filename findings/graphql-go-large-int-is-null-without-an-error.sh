#!/bin/sh
# graphql-go: an Int field whose ID passes 32 bits is null, without an error.
#
# Package: github.com/graphql-go/graphql v0.8.1 (Go).
# Guess: a value that Int cannot hold is a field error, as the specification
#   says and as graphql-js does.
# Behaviour: the field is null and the answer has no errors: to the client it
#   is an order without an ID. It begins with the first ID above
#   2,147,483,647.
# Seen 2026-11-28: small 2147483647, large null, 0 errors.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/graphql-go/graphql@v0.8.1 2>>go.log

cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/graphql-go/graphql"
)

func main() {
	id := func(n int64) *graphql.Field {
		return &graphql.Field{Type: graphql.Int, Resolve: func(graphql.ResolveParams) (any, error) { return n, nil }}
	}
	schema, err := graphql.NewSchema(graphql.SchemaConfig{Query: graphql.NewObject(graphql.ObjectConfig{
		Name: "Query", Fields: graphql.Fields{"small": id(1<<31 - 1), "large": id(1179183313482456071)}})})
	if err != nil {
		panic(err)
	}
	answer := graphql.Do(graphql.Params{Schema: schema, RequestString: "{ small large }"})
	body, err := json.Marshal(answer)
	fmt.Println(string(body), err, "errors:", len(answer.Errors))
}
EOF
cat >want <<'EOF'
{"data":{"large":null,"small":2147483647}} <nil> errors: 0
EOF

go run . >got
cat got
diff want got >&2 || { echo "graphql-go-large-int-is-null-without-an-error: no longer holds" >&2; exit 1; }
