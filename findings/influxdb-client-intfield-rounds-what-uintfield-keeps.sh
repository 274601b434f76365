#!/bin/sh
# InfluxDB client (npm): intField rounds an ID that uintField keeps.
#
# Package: @influxdata/influxdb-client 1.35.0 (npm).
# Guess: intField and uintField take a number, or a string for what a number
#   cannot hold, and check both alike.
# Behaviour: uintField checks the digits of a string and writes them. intField
#   takes a string or a bigint through parseInt and writes the rounded number
#   with the suffix i, a valid exact integer of the line protocol. A hex-like
#   text stops at its first letter.
# Seen 2026-11-28: intField of '1179183313482456071' and of the bigint writes
#   1179183313482456000i, uintField writes 1179183313482456071u; '12e5' is 12i.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

npm install --no-audit --no-fund --ignore-scripts --loglevel=error \
	@influxdata/influxdb-client@1.35.0 >npm.log

cat >main.mjs <<'EOF'
import { Point } from '@influxdata/influxdb-client'

for (const id of ['1179183313482456071', 1179183313482456071n, '12e5'])
  for (const field of ['intField', 'uintField'])
    try {
      console.log(field, typeof id, id, new Point('orders')[field]('id', id).timestamp('1').toLineProtocol())
    } catch (error) {
      console.log(field, typeof id, id, error.message)
    }
EOF
cat >want <<'EOF'
intField string 1179183313482456071 orders id=1179183313482456000i 1
uintField string 1179183313482456071 orders id=1179183313482456071u 1
intField bigint 1179183313482456071n orders id=1179183313482456000i 1
uintField bigint 1179183313482456071n orders id=1179183313482456071u 1
intField string 12e5 orders id=12i 1
uintField string 12e5 uint value has an unsupported character at pos 2: 12e5
EOF

node main.mjs >got
cat got
diff want got >&2 || { echo "influxdb-client-intfield-rounds-what-uintfield-keeps: no longer holds" >&2; exit 1; }
