#!/bin/sh
# Avro in Go: the default of a long field is another ID, in both libraries.
#
# Packages: github.com/hamba/avro/v2 v2.31.0, github.com/linkedin/goavro/v2
#   v2.15.0 (Go); fastavro 1.13.1 (PyPI) for comparison.
# Guess: a schema is JSON, but a long is a long in it: a default of 19 digits is
#   exact, as it is in the data, or the schema is refused.
# Behaviour: the schema is read with numbers of double precision, and the
#   default converted to an int64. A field that was added with the ID of an
#   existing row as its default ("the tenant of all old records") reads another
#   ID from each old record, and goavro writes it where the field is missing.
#   hamba also writes the changed default into the schema's JSON.
# Seen 2026-11-29: ...071 is read as ...064 by both, and by fastavro as ...071;
#   as data it is exact in both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

export GOWORK=off GOFLAGS=-mod=mod
go mod init finding 2>go.log
go get github.com/hamba/avro/v2@v2.31.0 github.com/linkedin/goavro/v2@v2.15.0 2>>go.log
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check fastavro==1.13.1

cat >old.avsc <<'EOF'
{"type":"record","name":"order","fields":[{"name":"n","type":"int"}]}
EOF
cat >new.avsc <<'EOF'
{"type":"record","name":"order","fields":[{"name":"n","type":"int"},
 {"name":"tenant","type":"long","default":1179183313482456071}]}
EOF
cat >main.go <<'EOF'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/hamba/avro/v2"
	"github.com/linkedin/goavro/v2"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	oldText, newText := must(os.ReadFile("old.avsc")), must(os.ReadFile("new.avsc"))

	oldSchema, newSchema := avro.MustParse(string(oldText)), avro.MustParse(string(newText))
	record := must(avro.Marshal(oldSchema, map[string]any{"n": 1}))
	both := must(avro.NewSchemaCompatibility().Resolve(newSchema, oldSchema))
	var order map[string]any
	must(0, avro.Unmarshal(both, record, &order))
	fmt.Println("hamba, old record:", order["tenant"])
	fields := newSchema.(*avro.RecordSchema).Fields()
	fmt.Println("hamba, default in the schema:", string(must(json.Marshal(fields[1]))))
	record = must(avro.Marshal(newSchema, map[string]any{"n": 1, "tenant": int64(1179183313482456071)}))
	must(0, avro.Unmarshal(newSchema, record, &order))
	fmt.Println("hamba, data:", order["tenant"])

	codec := must(goavro.NewCodec(string(newText)))
	for name, value := range map[string]map[string]any{
		"missing": {"n": 1},
		"data":    {"n": 1, "tenant": int64(1179183313482456071)},
	} {
		native, _, err := codec.NativeFromBinary(must(codec.BinaryFromNative(nil, value)))
		fmt.Println("goavro,", name+":", must(native, err).(map[string]any)["tenant"])
	}
}
EOF
cat >main.py <<'EOF'
import io
import json

import fastavro

old, new = (json.load(open(name)) for name in ("old.avsc", "new.avsc"))
data = io.BytesIO()
fastavro.schemaless_writer(data, old, {"n": 1})
data.seek(0)
print("fastavro, old record:", fastavro.schemaless_reader(data, old, new)["tenant"])
EOF
cat >want <<'EOF'
fastavro, old record: 1179183313482456071
goavro, data: 1179183313482456071
goavro, missing: 1179183313482456064
hamba, data: 1179183313482456071
hamba, default in the schema: {"name":"tenant","type":"long","default":1179183313482456064}
hamba, old record: 1179183313482456064
EOF

go run . >out
v/bin/python main.py >>out
LC_ALL=C sort out >got
cat got
diff want got >&2 || { echo "avro-go-rounds-the-default-of-a-long: no longer holds" >&2; exit 1; }
