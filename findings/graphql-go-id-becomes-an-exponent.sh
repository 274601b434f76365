#!/bin/sh
# graphql-go: an ID variable given as the number 1234567 arrives as
# "1.234567e+06".
#
# Package: github.com/graphql-go/graphql v0.8.1 (Go).
# Guess: the specification lets a client send an ID as an integer; it arrives
#   as the text of its digits (exact up to 2^53).
# Behaviour: the variables of a request are decoded as float64, and the ID is
#   that number printed by %v: from seven digits on with an exponent. Fixtures
#   with small IDs work. An integer in the query text is right.
# Seen 2026-11-28: 123456 is "123456", 1234567 is "1.234567e+06"; in the query
#   text "1234567".
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
	order := &graphql.Field{
		Type: graphql.String,
		Args: graphql.FieldConfigArgument{"id": &graphql.ArgumentConfig{Type: graphql.ID}},
		Resolve: func(p graphql.ResolveParams) (any, error) {
			return fmt.Sprintf("looked up %q", p.Args["id"]), nil
		},
	}
	schema, err := graphql.NewSchema(graphql.SchemaConfig{Query: graphql.NewObject(graphql.ObjectConfig{
		Name: "Query", Fields: graphql.Fields{"order": order}})})
	if err != nil {
		panic(err)
	}
	for _, body := range []string{
		`{"query": "query($id: ID) { order(id: $id) }", "variables": {"id": 123456}}`,
		`{"query": "query($id: ID) { order(id: $id) }", "variables": {"id": 1234567}}`,
		`{"query": "{ order(id: 1234567) }"}`,
	} {
		var request struct {
			Query     string
			Variables map[string]any
		}
		if err := json.Unmarshal([]byte(body), &request); err != nil {
			panic(err)
		}
		answer := graphql.Do(graphql.Params{Schema: schema, RequestString: request.Query, VariableValues: request.Variables})
		fmt.Println(answer.Data, answer.Errors)
	}
}
EOF
cat >want <<'EOF'
map[order:looked up "123456"] []
map[order:looked up "1.234567e+06"] []
map[order:looked up "1234567"] []
EOF

go run . >got
cat got
diff want got >&2 || { echo "graphql-go-id-becomes-an-exponent: no longer holds" >&2; exit 1; }
