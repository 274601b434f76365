#!/bin/sh
# Avro in Python: an int in a union of long and double is rounded by one
# library or the other, in either order of the branches.
#
# Packages: fastavro 1.13.1, avro 1.12.1 (PyPI).
# Guess: an int takes the branch long, a float the branch double; the order of
#   the branches does not matter.
# Behaviour: double accepts an int in both. fastavro takes the first branch
#   that accepts the value, the official avro package the last: with [null,
#   double, long] fastavro rounds the ID in the file, with [null, long,
#   double] avro does. No error, and no order that is right in both.
# Seen 2026-11-28: as said; with float instead of double
#   1.1791833398362767e+18.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

python3 -m venv v
v/bin/pip install -q --disable-pip-version-check fastavro==1.13.1 avro==1.12.1

cat >main.py <<'EOF'
import io, json
import avro.io, avro.schema, fastavro

for union in (["null", "double", "long"], ["null", "float", "long"], ["null", "long", "double"]):
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": union}]}
    row = {"id": 1179183313482456071}
    parsed = fastavro.parse_schema(schema)
    file = io.BytesIO()
    fastavro.schemaless_writer(file, parsed, row)
    file.seek(0)
    fast = fastavro.schemaless_reader(file, parsed)["id"]
    parsed = avro.schema.parse(json.dumps(schema))
    file = io.BytesIO()
    avro.io.DatumWriter(parsed).write(row, avro.io.BinaryEncoder(file))
    file.seek(0)
    official = avro.io.DatumReader(parsed).read(avro.io.BinaryDecoder(file))["id"]
    print(union, "fastavro", fast, "avro", official)
EOF
cat >want <<'EOF'
['null', 'double', 'long'] fastavro 1.179183313482456e+18 avro 1179183313482456071
['null', 'float', 'long'] fastavro 1.1791833398362767e+18 avro 1179183313482456071
['null', 'long', 'double'] fastavro 1179183313482456071 avro 1.179183313482456e+18
EOF

v/bin/python main.py >got
cat got
diff want got >&2 || { echo "avro-libraries-pick-opposite-union-branches: no longer holds" >&2; exit 1; }
