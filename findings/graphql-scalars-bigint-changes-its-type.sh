#!/bin/sh
# graphql-scalars: the type of a BigInt field in the answer depends on the
# size of the ID.
#
# Packages: graphql-scalars 2.0.0, graphql 16.15.0 (npm).
# Guess: BigInt is always written as a string (exact), or always as a number
#   (rounded by some clients).
# Behaviour: values within 2^53 are JSON numbers, larger ones strings, within
#   one list. A typed client (Java, Go, Swift) that worked with the test data
#   fails on the first real ID, and === in JavaScript does not match.
# Seen 2026-11-28: 42 is a number and 1179183313482456071 a string, in the
#   same answer.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	graphql-scalars@2.0.0 graphql@16.15.0 >npm.log

cat >main.mjs <<'EOF'
import { GraphQLList, GraphQLObjectType, GraphQLSchema, graphql } from 'graphql'
import { GraphQLBigInt } from 'graphql-scalars'

const query = new GraphQLObjectType({ name: 'Query', fields: {
  ids: { type: new GraphQLList(GraphQLBigInt), resolve: () => [42n, 9007199254740991n, 1179183313482456071n] },
} })
const answer = await graphql({ schema: new GraphQLSchema({ query }), source: '{ ids }' })
console.log(JSON.stringify(answer))
EOF
cat >want <<'EOF'
{"data":{"ids":[42,9007199254740991,"1179183313482456071"]}}
EOF

node main.mjs 2>/dev/null >got
cat got
diff want got >&2 || { echo "graphql-scalars-bigint-changes-its-type: no longer holds" >&2; exit 1; }
